//! NVRTC, the compiler of CUDA C++, bound here in the few calls that are used.
//!
//! `cudarc` looks for the library of one CUDA version; this takes the newest that the
//! driver can run, whatever version that is built for.

use super::cache::{Cache, Key};
use super::{driver, library};
use crate::error::{Code, Error, Result};
use cudarc::driver::CudaContext;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

type Program = *mut c_void;
type Status = c_int;

struct Nvrtc {
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
}

/// Compiles CUDA C++ to a cubin for the device of a context, or takes it from the cache.
pub(super) fn compile(
    name: &str,
    text: &str,
    options: &[&str],
    context: &CudaContext,
) -> Result<Vec<u8>> {
    let (major, minor) = context
        .compute_capability()
        .map_err(|error| driver::failed("cannot ask for the compute capability", error))?;
    let arch = format!("--gpu-architecture=sm_{major}{minor}");
    let options: Vec<&str> = std::iter::once(arch.as_str())
        .chain(options.iter().copied())
        .collect();
    let name = format!("{}.cu", name.replace("::", "/"));
    let nvrtc = Nvrtc::get()?;
    let compile = || nvrtc.compile(&name, text, &options);
    match Cache::of_environment() {
        Some(cache) if !reads_files(text, &options) => {
            let version = nvrtc.version()?;
            let parts = [version.as_str(), &name, text];
            cache.get_or(
                Key::new(parts.into_iter().chain(options.iter().copied())),
                compile,
            )
        }
        _ => compile(),
    }
}

/// Whether the compiler may read other files: what it makes then is not known by its key.
fn reads_files(text: &str, options: &[&str]) -> bool {
    let text = text.replace("\\\n", "").replace("\\\r\n", "");
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    let by_directive = text
        .lines()
        .any(|line| has(line, &["#", "%:"]) && has(line, &["include", "import", "embed"]));
    let by_option = options.iter().any(|option| {
        has(
            option,
            &["include=", "-include", "optf", "options-file", "pch"],
        )
    });
    by_directive || by_option
}

impl Nvrtc {
    fn get() -> Result<&'static Nvrtc> {
        static NVRTC: OnceLock<std::result::Result<Nvrtc, String>> = OnceLock::new();
        let names = library::names("libnvrtc.so", driver::require()?);
        let nvrtc = NVRTC.get_or_init(|| Nvrtc::open(&names));
        nvrtc.as_ref().map_err(Error::failed_precondition)
    }

    fn open(names: &[String]) -> std::result::Result<Nvrtc, String> {
        let (library, _) = library::open(names).map_err(|reasons| {
            format!(
                "NVRTC, which compiles its CUDA C++, cannot be opened ({reasons}): install it (pip \
                 install 'jax[cuda13]' or 'jax[cuda12]' brings it), put its folder into \
                 LD_LIBRARY_PATH, or declare the module from PTX or a cubin"
            )
        })?;
        let nvrtc = (|| {
            // SAFETY: these functions have had these types since CUDA 11.2.
            unsafe {
                Ok(Nvrtc {
                    create: *library.get(b"nvrtcCreateProgram\0")?,
                    compile: *library.get(b"nvrtcCompileProgram\0")?,
                    log_size: *library.get(b"nvrtcGetProgramLogSize\0")?,
                    log: *library.get(b"nvrtcGetProgramLog\0")?,
                    cubin_size: *library.get(b"nvrtcGetCUBINSize\0")?,
                    cubin: *library.get(b"nvrtcGetCUBIN\0")?,
                    destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                    error_string: *library.get(b"nvrtcGetErrorString\0")?,
                    version: *library.get(b"nvrtcVersion\0")?,
                })
            }
        })();
        // The functions are used to the end of the process.
        std::mem::forget(library);
        nvrtc.map_err(|error: libloading::Error| format!("NVRTC is damaged: {error}"))
    }

    /// As in "12.9".
    fn version(&self) -> Result<String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: it writes two numbers.
        let status = unsafe { (self.version)(&mut major, &mut minor) };
        self.check(status, "NVRTC")?;
        Ok(format!("{major}.{minor}"))
    }

    fn compile(&self, name: &str, text: &str, options: &[&str]) -> Result<Vec<u8>> {
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| Error::invalid_argument("a NUL character in the source"))
        };
        let (name, text) = (c_string(name)?, c_string(text)?);
        let options = options.iter().map(|option| c_string(option));
        let options = options.collect::<Result<Vec<_>>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = ptr::null_mut();
        // SAFETY: the texts are NUL-terminated, and there are no headers.
        let status = unsafe {
            let (text, name) = (text.as_ptr(), name.as_ptr());
            (self.create)(&mut program, text, name, 0, ptr::null(), ptr::null())
        };
        self.check(status, "NVRTC")?;
        let program = Owned {
            nvrtc: self,
            program,
        };
        // SAFETY: the program is alive, and the options are NUL-terminated.
        let status =
            unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        if status != 0 {
            let log = program.read(self.log_size, self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let log = log.trim_end_matches(['\0', '\n']);
            let what = self.text(status);
            return Err(Error::new(
                Code::InvalidArgument,
                format!("NVRTC cannot compile it: {what}\n{log}"),
            ));
        }
        program.read(self.cubin_size, self.cubin)
    }

    fn check(&self, status: Status, what: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::internal(format!("{what}: {}", self.text(status))))
    }

    fn text(&self, status: Status) -> String {
        // SAFETY: NVRTC has a constant text for every number.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        text.to_string_lossy().into_owned()
    }
}

/// A program, destroyed when dropped.
struct Owned<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl Owned<'_> {
    /// Reads what NVRTC gives in two calls: its size, then itself.
    fn read(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        data: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: the program is alive.
        let status = unsafe { size(self.program, &mut len) };
        self.nvrtc.check(status, "NVRTC")?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: as above, and the memory has the size that NVRTC wants.
        let status = unsafe { data(self.program, bytes.as_mut_ptr().cast()) };
        self.nvrtc.check(status, "NVRTC")?;
        Ok(bytes)
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and used no more.
        unsafe { (self.nvrtc.destroy)(&mut self.program) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Nvrtc, reads_files};

    #[test]
    fn sources_that_include_others_are_told_from_those_that_do_not() {
        for text in [
            "#include <cuda_fp16.h>\nint x;",
            "int x;\n  # include \"a.h\"",
            "%:include \"a.h\"",
            "#\\\ninclude \"a.h\"",
            "#if __has_include(<a.h>)\n#endif",
        ] {
            assert!(reads_files(text, &[]), "{text}");
        }
        let text = "// This does not include a thing.\n#define N 3\nint x;";
        assert!(!reads_files(
            text,
            &["--use_fast_math", "-I/usr/include", "-DN=2"]
        ));
        for option in [
            "-include=a.h",
            "--pre-include=a.h",
            "-optf=a",
            "--use-pch=a",
        ] {
            assert!(reads_files(text, &[option]), "{option}");
        }
    }

    #[test]
    fn sources_are_compiled_or_refused_with_the_log() {
        // SAFETY: as in `open`.
        if unsafe { libloading::Library::new("libnvrtc.so.12") }.is_err() {
            eprintln!("skipped: this machine has no NVRTC 12");
            return;
        }
        let nvrtc = Nvrtc::open(&["libnvrtc.so.12".to_owned()]).unwrap();
        let options = ["--gpu-architecture=sm_80"];
        let text = r#"extern "C" __global__ void f(int* x) { *x = 1; }"#;
        assert!(nvrtc.version().unwrap().starts_with("12."));
        let binary = nvrtc.compile("right.cu", text, &options).unwrap();
        assert_eq!(binary[..4], *b"\x7fELF");
        let error = nvrtc.compile("dir/wrong.cu", "no_such_type x;", &options);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("dir/wrong.cu(1)") && error.contains("no_such_type"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_compiler_is_named_with_a_way_out() {
        let error = Nvrtc::open(&["libno-such-nvrtc.so.12".to_owned()])
            .err()
            .unwrap();
        assert!(
            error.contains("libno-such-nvrtc.so.12") && error.contains("pip"),
            "{error}"
        );
    }
}
