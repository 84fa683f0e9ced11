//! Modules of kernels, and their loading.

use super::context::Context;
use super::device::{Device, MAX_DEVICES};
use super::driver::{self, failed};
use super::nvrtc;
use crate::error::{Code, Error, Result};
use crate::registry::ModuleRegistration;
use crate::signature::Callable;
use cudarc::driver::sys::{self, CUjit_option, CUresult};
use cudarc::driver::{CudaFunction, CudaModule, DriverError, LaunchConfig, result};
use cudarc::nvrtc::Ptx;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A module, as `cuda::module!` declares it. Not for other uses.
pub struct Module {
    /// Its path in Rust.
    id: &'static str,
    image: Image,
    kernels: &'static [Kernel],
    /// For each device, the functions of the kernels.
    loaded: [OnceLock<Box<[CudaFunction]>>; MAX_DEVICES],
    loading: Mutex<()>,
}

/// What a module is loaded from.
pub enum Image {
    /// CUDA C++, and options for NVRTC.
    Source(&'static str, &'static [&'static str]),
    /// PTX.
    Ptx(&'static str),
    /// A cubin or fatbin.
    Binary(&'static [u8]),
}

/// A kernel as it was declared.
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// The sizes of its parameters in bytes.
    pub params: &'static [usize],
}

impl Image {
    /// `source(text, options = [..])`
    pub const fn source(text: &'static str, options: &'static [&'static str]) -> Image {
        Image::Source(text, options)
    }

    /// `ptx(text)`
    pub const fn ptx(text: &'static str, options: &'static [&'static str]) -> Image {
        assert!(options.is_empty(), "`options` are for `source(..)` only");
        Image::Ptx(text)
    }

    /// `binary(bytes)`
    pub const fn binary(bytes: &'static [u8], options: &'static [&'static str]) -> Image {
        assert!(options.is_empty(), "`options` are for `source(..)` only");
        Image::Binary(bytes)
    }
}

impl Module {
    /// A module that is not loaded yet.
    pub const fn new(id: &'static str, image: Image, kernels: &'static [Kernel]) -> Module {
        Module {
            id,
            image,
            kernels,
            loaded: [const { OnceLock::new() }; MAX_DEVICES],
            loading: Mutex::new(()),
        }
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `index` is that of a kernel, `params` points to values of its parameters' types, and
    /// the kernel, so launched, reads and writes only what they give it.
    pub unsafe fn launch(
        &'static self,
        index: usize,
        cx: &Context,
        config: LaunchConfig,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        let function = self.function(index, cx)?;
        // The body may have come to another thread.
        cx.device()
            .bind_to_thread()
            // SAFETY: the caller's promise; function and stream are of this device.
            .and_then(|()| unsafe {
                result::launch_kernel(
                    function.cu_function(),
                    config.grid_dim,
                    config.block_dim,
                    config.shared_mem_bytes,
                    cx.stream().cu_stream(),
                    params,
                )
            })
            .map_err(|error| {
                let LaunchConfig {
                    grid_dim: grid,
                    block_dim: block,
                    shared_mem_bytes,
                } = config;
                failed(
                    format_args!(
                        "cannot launch the kernel `{}` with {grid:?} blocks of {block:?} threads \
                         and {shared_mem_bytes} bytes of dynamic shared memory",
                        self.kernels[index].name
                    ),
                    error,
                )
            })
            .inspect(|()| cx.count_launch())
    }

    /// The function of a kernel on the device of a call.
    pub fn function(&'static self, index: usize, cx: &Context) -> Result<&'static CudaFunction> {
        if let Some(functions) = self.loaded[cx.device_ordinal()].get() {
            return Ok(&functions[index]);
        }
        if cx.is_capturing()? {
            return Err(Error::failed_precondition(format!(
                "the CUDA module `{}` is not loaded, and cannot be while a CUDA graph is captured: \
                 name it in `modules = ...` of the callable that uses it",
                self.id
            )));
        }
        Ok(&self.load(cx.loading_device())?[index])
    }

    /// Loads the module on a device, which is current; once.
    fn load(&'static self, device: &Device) -> Result<&'static [CudaFunction]> {
        let slot = &self.loaded[device.ordinal()];
        if let Some(functions) = slot.get() {
            return Ok(functions);
        }
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.get().is_none() {
            let functions = self.functions(device).map_err(|error| {
                let code = error.code();
                let text = format!(
                    "cannot load the CUDA module `{}` on device {}: {error}",
                    self.id,
                    device.ordinal()
                );
                Error::new(code, text)
            })?;
            let _ = slot.set(functions);
        }
        Ok(slot.get().expect("it was set"))
    }

    fn functions(&self, device: &Device) -> Result<Box<[CudaFunction]>> {
        let module = match &self.image {
            Image::Source(text, options) => {
                let binary = nvrtc::compile(self.id, text, options, device.context())?;
                load_binary(device, &binary)?
            }
            Image::Ptx(text) => load_ptx(device, text)?,
            Image::Binary(bytes) => load_binary(device, bytes)?,
        };
        let kernels = self.kernels.iter();
        kernels.map(|kernel| kernel.find(&module)).collect()
    }
}

fn load_ptx(device: &Device, text: &str) -> Result<Arc<CudaModule>> {
    // Some tools end their files with a NUL.
    let text = text.trim_end_matches('\0');
    let image = CString::new(text)
        .map_err(|_| Error::invalid_argument("a NUL character in the PTX text"))?;
    let module = device.context().load_module(Ptx::from_src(text));
    module.map_err(|error| {
        let log = jit_log(image.as_bytes_with_nul());
        failed(format_args!("the driver refuses its PTX{log}"), error)
    })
}

fn load_binary(device: &Device, bytes: &[u8]) -> Result<Arc<CudaModule>> {
    // What is no binary the driver reads as text, up to a NUL.
    let image = [bytes, &[0]].concat();
    let module = device.context().load_module(Ptx::from_binary(image));
    module.map_err(|error| failed("the driver refuses its binary", error))
}

/// What the driver's compiler says of a text that it refuses, in front of a colon.
fn jit_log(image: &[u8]) -> String {
    let mut log = vec![0_u8; 16 * 1024];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        ptr::without_provenance_mut(log.len() - 1),
    ];
    let mut module = ptr::null_mut();
    // SAFETY: the image ends with a NUL, and the options give a buffer and its size.
    unsafe {
        let status = sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        );
        if status == CUresult::CUDA_SUCCESS {
            let _ = result::module::unload(module);
        }
    }
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(0);
    let log = String::from_utf8_lossy(&log[..end]);
    match log.trim() {
        "" => String::new(),
        log => format!("\n{log}\n"),
    }
}

impl Kernel {
    fn find(&self, module: &Arc<CudaModule>) -> Result<CudaFunction> {
        let function = module.load_function(self.name).map_err(|error| {
            let name = self.name;
            match error.0 {
                CUresult::CUDA_ERROR_NOT_FOUND => Error::not_found(format!(
                    "it has no kernel `{name}`; in CUDA C++ it must be an `extern \"C\" \
                     __global__ void {name}(...)`"
                )),
                _ => failed(format_args!("the kernel `{name}`"), error),
            }
        })?;
        if let Some(sizes) = param_sizes(function.cu_function()) {
            self.check_params(&sizes)?;
        }
        load_now(&function)
            .map_err(|error| failed(format_args!("the kernel `{}`", self.name), error))?;
        Ok(function)
    }

    fn check_params(&self, sizes: &[usize]) -> Result<()> {
        if sizes == self.params {
            return Ok(());
        }
        Err(Error::new(
            Code::InvalidArgument,
            format!(
                "the kernel `{}` has parameters of {sizes:?} bytes, but those declared in \
                 `cuda::module!` have {:?}",
                self.name, self.params
            ),
        ))
    }
}

/// Loads a function's code, which the driver may otherwise put off to the first launch: that
/// may be in a capture. Drivers before CUDA 12.4 have no such call.
fn load_now(function: &CudaFunction) -> std::result::Result<(), DriverError> {
    if !driver::has(b"cuFuncLoad\0") {
        return Ok(());
    }
    // SAFETY: the function is of a loaded module.
    unsafe { sys::cuFuncLoad(function.cu_function()) }.result()
}

/// The sizes of a function's parameters, if the driver can tell.
pub(super) fn param_sizes(function: sys::CUfunction) -> Option<Vec<usize>> {
    if !driver::has(b"cuFuncGetParamInfo\0") {
        return None;
    }
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded, and the driver has this call, which writes two
        // numbers, or nothing for a parameter that is not there.
        let status =
            unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut size) };
        match status {
            CUresult::CUDA_SUCCESS => sizes.push(size),
            CUresult::CUDA_ERROR_INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
}

/// The modules that a callable uses: those that it names, or all of its crate.
fn modules_of(callable: &Callable) -> impl Iterator<Item = &'static Module> {
    let all = inventory::iter::<ModuleRegistration>.into_iter();
    all.map(|registration| registration.0)
        .filter(|module| match callable.modules {
            Some(uses) => uses.iter().any(|used| used.id == module.id),
            None => module.id.split("::").next() == Some(callable.crate_name()),
        })
}

/// Loads what a callable uses on a device, from a thread that is not XLA's.
pub(crate) fn preload(callable: &Callable, ordinal: i32) -> Result<()> {
    Device::with(ordinal, |device| load(callable, device))
}

/// Loads what a callable uses on a device, which is current.
pub(crate) fn load(callable: &Callable, device: &Device) -> Result<()> {
    modules_of(callable).try_for_each(|module| module.load(device).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::Kernel;

    #[test]
    fn parameters_of_other_sizes_are_refused() {
        let kernel = Kernel {
            name: "saxpy",
            params: &[4, 8],
        };
        assert!(kernel.check_params(&[4, 8]).is_ok());
        let error = kernel.check_params(&[4, 4]).unwrap_err().to_string();
        assert!(
            error.contains("`saxpy` has parameters of [4, 4] bytes"),
            "{error}"
        );
        assert!(kernel.check_params(&[4]).is_err());
    }
}
