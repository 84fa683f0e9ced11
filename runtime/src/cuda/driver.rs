//! The driver library: whether it is there, and its errors.

use crate::error::{Code, Error, Result};
use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUresult};
use std::sync::OnceLock;

/// The oldest driver interface that is supported: CUDA 12.0.
const OLDEST: i32 = 12_000;

/// Checks, once, that there is a driver to call, and gives its version as CUDA counts them: 12080
/// for 12.8. Nothing else of CUDA may be called before: `cudarc` panics without the library.
pub(super) fn require() -> Result<i32> {
    static STATE: OnceLock<std::result::Result<i32, String>> = OnceLock::new();
    let state = match STATE.get() {
        Some(state) => state,
        None => {
            // SAFETY: opens and closes the library, whose initialisers are the driver's own.
            let version = match unsafe { sys::is_culib_present() } {
                true => Some(version()?),
                false => None,
            };
            STATE.get_or_init(|| check(version))
        }
    };
    state.clone().map_err(Error::failed_precondition)
}

/// Checks the driver's version; none for no driver.
fn check(version: Option<i32>) -> std::result::Result<i32, String> {
    let Some(version) = version else {
        return Err(
            "the CUDA driver library libcuda.so.1 cannot be opened: install the NVIDIA driver \
             (version 525 or newer), or in a container start it with access to the GPU"
                .into(),
        );
    };
    if version < OLDEST {
        return Err(format!(
            "the CUDA driver library libcuda.so.1 is for CUDA {}, which is too old: CUDA 12.0 or \
             newer is needed; update the NVIDIA driver to version 525 or newer",
            text(version)
        ));
    }
    Ok(version)
}

fn version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `cuDriverGetVersion` may be called at any time, and writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| failed("cannot ask for the CUDA driver's version", error))?;
    Ok(version)
}

fn text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Whether the driver has a function, which drivers older than it have not.
pub(super) fn has(symbol: &[u8]) -> bool {
    // SAFETY: only called where the library is present; the symbol is only looked for.
    unsafe {
        sys::culib()
            .get::<unsafe extern "C" fn() -> CUresult>(symbol)
            .is_ok()
    }
}

/// An error of the driver, with what was done.
#[cold]
pub(crate) fn failed(what: impl std::fmt::Display, error: DriverError) -> Error {
    let code = match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Code::ResourceExhausted,
        CUresult::CUDA_ERROR_INVALID_VALUE => Code::InvalidArgument,
        _ => Code::Internal,
    };
    Error::new(code, format!("{what}: {}", describe(error)))
}

/// An error as the driver names and explains it.
pub(super) fn describe(error: DriverError) -> String {
    let text = error.error_string().map(|text| text.to_string_lossy());
    match text {
        Ok(text) => format!("{:?} ({text})", error.0),
        Err(_) => format!("{:?}", error.0),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_missing_driver_is_named() {
        let error = check(None).unwrap_err();
        assert!(
            error.contains("libcuda.so.1") && error.contains("install"),
            "{error}"
        );
    }

    #[test]
    fn an_old_driver_is_told_from_a_new_one() {
        let error = check(Some(11_080)).unwrap_err();
        assert!(
            error.contains("for CUDA 11.8") && error.contains("12.0"),
            "{error}"
        );
        assert_eq!(check(Some(12_000)), Ok(12_000));
        assert_eq!(check(Some(13_010)), Ok(13_010));
    }
}
