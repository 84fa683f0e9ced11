//! Modules, functions, launches.

use super::{number, put};
use crate::driver::call::driver;
use crate::driver::kernels::{self, MAGIC};
use crate::driver::memory::pointer;
use crate::driver::work::{HostCall, Kernel, Work};
use crate::driver::world::{Function, World};
use crate::driver::{Fault, Result};
use cudarc::driver::sys::{CUfunction, CUmodule, CUresult, CUstream};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_void};

driver! {
    None cuModuleLoadData(out: *mut CUmodule, image: *const c_void) |world| {
        put(out, load(world, image)?);
        Ok(())
    }
    None cuModuleLoadDataEx(
        out: *mut CUmodule,
        image: *const c_void,
        _num_options: u32,
        _options: *mut u32,
        _values: *mut *mut c_void,
    ) |world| {
        put(out, load(world, image)?);
        Ok(())
    }
    Done cuModuleUnload(module: CUmodule) |world| {
        world.unless_restricted()?;
        let module = number(module);
        world.modules.remove(module)?;
        let functions = world.functions.iter();
        let gone: Vec<_> = functions
            .filter(|(_, function)| function.module == module)
            .map(|(handle, _)| handle)
            .collect();
        gone.into_iter().try_for_each(|handle| world.functions.remove(handle).map(|_| ()))
    }
    None cuModuleGetFunction(out: *mut CUfunction, module: CUmodule, name: *const c_char)
    |world| {
        let module = number(module);
        let device = world.modules.get(module)?.0;
        let name = CStr::from_ptr(name).to_string_lossy();
        let kernel = kernels::find(&name).filter(|_| world.modules.get(module).is_ok_and(
            |(_, names)| names.contains(&*name),
        ));
        let kernel = kernel.ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        let handle = world.handle();
        world.functions.insert(handle, Function { module, device, kernel });
        put(out, pointer(handle));
        Ok(())
    }
    None cuFuncLoad(function: CUfunction) |world| {
        world.functions.get(number(function))?;
        Ok(())
    }
    None cuFuncGetParamInfo(
        function: CUfunction,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) |world| {
        let kernel = world.functions.get(number(function))?.kernel;
        let params = if world.hides_params { &[] } else { kernel.params };
        let found = *params.get(index).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        put(offset, params[..index].iter().sum());
        put(size, found);
        Ok(())
    }
    None cuLaunchKernel(
        function: CUfunction,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: CUstream,
        params: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) |world| {
        let kernel = Kernel {
            function: number(function),
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            // SAFETY: the caller gives all parameters.
            params: params_of(world, number(function), params)?,
        };
        let device = world.functions.get(kernel.function)?.device;
        if device != world.streams.get(number(stream))?.device {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE.into());
        }
        world.enqueue(number(stream), Work::Kernel(kernel))
    }
    None cuLaunchHostFunc(
        stream: CUstream,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) |world| {
        let function = function.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        world.enqueue(number(stream), Work::Host(HostCall { function, data }))
    }
}

/// A kernel's parameters, copied.
///
/// # Safety
/// There is a pointer to each.
pub(super) unsafe fn params_of(
    world: &World,
    function: u64,
    params: *mut *mut c_void,
) -> std::result::Result<Vec<Box<[u8]>>, Fault> {
    let sizes = world.functions.get(function)?.kernel.params.iter();
    let params = sizes.enumerate().map(|(i, &size)| {
        // SAFETY: the caller's promise.
        Box::from(unsafe { std::slice::from_raw_parts((*params.add(i)).cast::<u8>(), size) })
    });
    Ok(params.collect())
}

/// # Safety
/// The image is a text that ends with a NUL.
unsafe fn load(world: &mut World, image: *const c_void) -> Result<CUmodule> {
    world.unless_restricted()?;
    let device = world.current()?;
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    let names = text.strip_prefix(MAGIC);
    let names = names.ok_or(CUresult::CUDA_ERROR_INVALID_IMAGE)?;
    let names: BTreeSet<_> = names.split_whitespace().map(str::to_owned).collect();
    let handle = world.handle();
    world.modules.insert(handle, (device, names));
    Ok(pointer(handle))
}
