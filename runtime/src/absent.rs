//! A target on a platform that it has no function for: what a program is told that gets there.

use crate::error::Error;
use crate::signature::{Callable, Platform};

/// The error of a call on `platform` of a target that has only `callable`, for another one.
pub(crate) fn error(callable: &Callable, platform: Platform) -> Error {
    let name = callable.name;
    Error::failed_precondition(match platform {
        Platform::Cpu => format!(
            "it has no function for the CPU, only one for CUDA: add one, #[jax_callable(name = \
             \"{name}\")] with cpu::Array parameters, or move the arrays to a GPU with \
             jax.device_put"
        ),
        Platform::Cuda if cfg!(feature = "_cuda") => format!(
            "it has no function for CUDA, only one for the CPU: add one, #[jax_callable(name = \
             \"{name}\")] with cuda::Array parameters, or move the arrays to the CPU with \
             jax.device_put"
        ),
        Platform::Cuda => format!(
            "it has no function for CUDA, because its library was built without the feature `cuda` \
             of jax-callable: turn that on (cargo build --release --features cuda, if the crate \
             passes it on), add a function if there is none, #[jax_callable(name = \"{name}\")] \
             with cuda::Array parameters, or move the arrays to the CPU with jax.device_put"
        ),
    })
}
