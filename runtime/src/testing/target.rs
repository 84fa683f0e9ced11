//! Targets of this program.

use super::Call;
use crate::error::{Error, Result};
use crate::registry::{Handlers, registrations};
use crate::signature::{Callable, Platform};

/// A callable of this program.
#[derive(Clone, Copy)]
pub struct Target {
    pub(super) callable: &'static Callable,
    pub(super) handlers: Handlers,
}

impl Target {
    /// Finds a callable for the CPU by its name, `f` or `crate.f`.
    ///
    /// # Errors
    /// If this program has no such callable, or has several.
    pub fn find(name: &str) -> Result<Target> {
        Target::find_on(Platform::Cpu, name)
    }

    /// Finds a callable for GPUs by its name. A call of it is to be
    /// [instantiated](Call::instantiate).
    ///
    /// # Errors
    /// As for [`find`](Target::find).
    pub fn find_cuda(name: &str) -> Result<Target> {
        Target::find_on(Platform::Cuda, name)
    }

    fn find_on(platform: Platform, name: &str) -> Result<Target> {
        let matches: Vec<_> = registrations()
            .into_iter()
            .filter(|r| r.callable().platform() == platform)
            .filter(|r| {
                let callable = r.callable();
                name == callable.name
                    || name.strip_prefix(callable.crate_name())
                        == Some(format!(".{}", callable.name).as_str())
            })
            .collect();
        match matches[..] {
            [one] => Ok(Target {
                callable: one.callable(),
                handlers: one.handlers(),
            }),
            [] => Err(Error::not_found(format!(
                "this program has no callable `{name}` for {}; it has: {}",
                platform.name(),
                registrations()
                    .iter()
                    .map(|r| format!("{}.{}", r.callable().crate_name(), r.callable().name))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
            [first, second, ..] => Err(Error::invalid_argument(format!(
                "`{name}` is ambiguous: it is defined at {}:{} and {}:{}",
                first.callable().file,
                first.callable().line,
                second.callable().file,
                second.callable().line
            ))),
        }
    }

    /// A call of it, whose arguments are still to be given.
    pub fn call(self) -> Call {
        Call::new(self)
    }
}
