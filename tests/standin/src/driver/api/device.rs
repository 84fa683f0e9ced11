//! The driver, its devices, contexts, and errors.

use super::{number, put};
use crate::driver::call::driver;
use crate::driver::capture::{MODE, Mode};
use crate::driver::memory::pointer;
use crate::driver::world::{CURRENT, context};
use crate::driver::{DEVICES, Fault};
use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute, CUresult};
use std::ffi::{CStr, c_char};

fn device(device: CUdevice) -> Result<usize, Fault> {
    let number = usize::try_from(device).ok();
    let number = number.filter(|&number| number < DEVICES);
    number.ok_or_else(|| CUresult::CUDA_ERROR_INVALID_DEVICE.into())
}

driver! {
    None cuInit(_flags: u32) |world| {
        world.is_initialised = true;
        Ok(())
    }
    None cuDriverGetVersion(version: *mut i32) |_world| {
        put(version, 12_080);
        Ok(())
    }
    None cuDeviceGetCount(count: *mut i32) |_world| {
        put(count, DEVICES as i32);
        Ok(())
    }
    None cuDeviceGet(out: *mut CUdevice, ordinal: i32) |world| {
        if !world.is_initialised {
            return Err(CUresult::CUDA_ERROR_NOT_INITIALIZED.into());
        }
        put(out, device(ordinal)? as CUdevice);
        Ok(())
    }
    None cuDeviceGetAttribute(out: *mut i32, attribute: u32, of: CUdevice) |_world| {
        device(of)?;
        let pools = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as u32;
        put(out, i32::from(attribute == pools));
        Ok(())
    }
    None cuDevicePrimaryCtxRetain(out: *mut CUcontext, of: CUdevice) |world| {
        let device = device(of)?;
        world.contexts[device] += 1;
        put(out, pointer(context(device)));
        Ok(())
    }
    Done cuDevicePrimaryCtxRelease_v2(of: CUdevice) |world| {
        let retained = &mut world.contexts[device(of)?];
        *retained = retained.checked_sub(1).ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        Ok(())
    }
    None cuCtxGetCurrent(out: *mut CUcontext) |world| {
        if !world.is_initialised {
            return Err(CUresult::CUDA_ERROR_NOT_INITIALIZED.into());
        }
        put(out, pointer(CURRENT.get()));
        Ok(())
    }
    None cuCtxSetCurrent(new: CUcontext) |world| {
        let new = number(new);
        let is_known = (0..DEVICES).any(|d| context(d) == new && world.contexts[d] > 0);
        if new != 0 && !is_known {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT.into());
        }
        CURRENT.set(new);
        Ok(())
    }
    None cuCtxSynchronize() |world| {
        world.current()?;
        world.unless_restricted()?;
        world.finish_all();
        Ok(())
    }
    None cuThreadExchangeStreamCaptureMode(mode: *mut u32) |_world| {
        let new = Mode::of(*mode)?;
        *mode = MODE.replace(new) as u32;
        Ok(())
    }
    None cuGetErrorName(_code: u32, out: *mut *const c_char) |_world| {
        put(out, c"CUDA_ERROR_OF_THE_STAND_IN".as_ptr());
        Ok(())
    }
    None cuGetErrorString(code: u32, out: *mut *const c_char) |_world| {
        put(out, text(code).as_ptr());
        Ok(())
    }
}

fn text(code: u32) -> &'static CStr {
    match code {
        1 => c"invalid argument",
        2 => c"out of memory",
        719 => c"unspecified launch failure",
        801 => c"operation not supported",
        900 => c"operation not permitted when stream is capturing",
        901 => c"operation failed due to a previous error during capture",
        _ => c"an error of the stand-in",
    }
}
