//! The driver library: whether it is there, and its errors.

use crate::error::{Code, Error, Result};
use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUresult};
use std::sync::OnceLock;

/// The oldest driver interface that is supported: CUDA 12.0.
const OLDEST: i32 = 12_000;

/// Checks, once, that there is a driver to call. Nothing else of CUDA may be called before:
/// `cudarc` panics without the library.
pub(super) fn require() -> Result<()> {
    static STATE: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    STATE
        .get_or_init(|| {
            // SAFETY: opens and closes the library, whose initialisers are the driver's own.
            check(unsafe { sys::is_culib_present() }, version)
        })
        .clone()
        .map_err(Error::failed_precondition)
}

fn check(is_present: bool, version: impl FnOnce() -> i32) -> std::result::Result<(), String> {
    if !is_present {
        return Err(
            "the CUDA driver library libcuda.so.1 cannot be opened: install the NVIDIA driver \
             (version 525 or newer), or in a container start it with access to the GPU"
                .into(),
        );
    }
    let version = version();
    if version < OLDEST {
        return Err(format!(
            "the CUDA driver library libcuda.so.1 is for CUDA {}, which is too old: CUDA 12.0 or \
             newer is needed; update the NVIDIA driver to version 525 or newer",
            text(version)
        ));
    }
    Ok(())
}

/// The driver's version as CUDA counts them: 12080 for 12.8.
pub(super) fn version() -> i32 {
    let mut version = 0;
    // SAFETY: `cuDriverGetVersion` may be called at any time, and writes one integer.
    match unsafe { sys::cuDriverGetVersion(&mut version) } {
        CUresult::CUDA_SUCCESS => version,
        _ => 0,
    }
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
    fn a_missing_driver_is_named_and_not_called() {
        let error = check(false, || panic!("called")).unwrap_err();
        assert!(
            error.contains("libcuda.so.1") && error.contains("install"),
            "{error}"
        );
    }

    #[test]
    fn an_old_driver_is_told_from_a_new_one() {
        let error = check(true, || 11_080).unwrap_err();
        assert!(
            error.contains("for CUDA 11.8") && error.contains("12.0"),
            "{error}"
        );
        assert_eq!(check(true, || 12_000), Ok(()));
        assert_eq!(check(true, || 13_010), Ok(()));
    }
}
