//! What all calls have in common: the lock, failures, the scheduler, misuse.

use super::world::{World, world};
use super::{Fault, Result};
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::sync::Mutex;

/// What a call does that is made to fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// All the same what it should, as calls that end something: their errors are those of
    /// earlier work.
    Done,
}

thread_local! {
    static IS_IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Calls that callbacks made, which hold the lock.
pub(crate) static IN_CALLBACKS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Runs a function of the user, which must not call the driver.
pub(crate) fn in_callback(work: impl FnOnce()) {
    let before = IS_IN_CALLBACK.replace(true);
    work();
    IS_IN_CALLBACK.set(before);
}

/// Makes a call.
pub(crate) fn call(
    name: &'static str,
    effect: Effect,
    work: impl FnOnce(&mut World) -> Result,
) -> CUresult {
    if IS_IN_CALLBACK.get() {
        let mut calls = IN_CALLBACKS.lock().expect("nothing panics with it");
        calls.push(name);
        return CUresult::CUDA_ERROR_NOT_PERMITTED;
    }
    let world = &mut *world();
    let failure = world.faults.next(name);
    if let Some(code) = failure
        && effect == Effect::None
    {
        return code;
    }
    world.run_some();
    let result = work(world);
    world.free_orphans();
    let code = match result {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(Fault { code, misuse }) => {
            if let Some(misuse) = misuse {
                world.misuses.push(format!("{name}: {misuse}"));
            }
            code
        }
    };
    failure.unwrap_or(code)
}

/// Declares functions that the library exports. Their callers give what the driver's
/// documentation asks for.
macro_rules! driver {
    ($($effect:ident $name:ident($($arg:ident: $ty:ty),* $(,)?) |$world:ident| $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> ::cudarc::driver::sys::CUresult {
            $crate::driver::call::call(
                stringify!($name),
                $crate::driver::call::Effect::$effect,
                |$world| {
                    // SAFETY: pointers of the caller's are what the documentation asks for.
                    #[allow(unused_unsafe)]
                    unsafe { $body }
                },
            )
        }
    )*};
}
pub(crate) use driver;
