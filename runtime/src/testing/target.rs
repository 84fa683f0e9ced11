//! Targets of this program.

use super::Call;
use crate::error::{Error, Result};
use crate::ffi::host::{self, MINOR_VERSIONS};
use crate::ffi::{host_frame, sys};
use crate::registry::{Handlers, registrations};
use crate::signature::{Callable, Platform};
use std::fmt;

/// A callable of this program.
#[derive(Clone, Copy)]
pub struct Target {
    pub(super) callable: &'static Callable,
    pub(super) handlers: Handlers,
}

/// What XLA is told of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The version of XLA's FFI API that it asks for: major, minor.
    pub api_version: (i32, i32),
    /// Whether XLA may capture it into its CUDA graphs.
    pub command_buffer_compatible: bool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.path()).finish()
    }
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
            .filter(|r| r.callable.platform() == platform)
            .filter(|r| {
                let callable = r.callable;
                name == callable.name
                    || name.strip_prefix(callable.crate_name())
                        == Some(format!(".{}", callable.name).as_str())
            })
            .collect();
        match matches[..] {
            [one] => Ok(Target {
                callable: one.callable,
                handlers: one.handlers(),
            }),
            [] => Err(Error::not_found(format!(
                "this program has no callable `{name}` for {}; it has: {}",
                platform.name(),
                registrations()
                    .iter()
                    .map(|r| format!("{}.{}", r.callable.crate_name(), r.callable.name))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
            [first, second, ..] => Err(Error::invalid_argument(format!(
                "`{name}` is ambiguous: it is defined at {}:{} and {}:{}",
                first.callable.file,
                first.callable.line,
                second.callable.file,
                second.callable.line
            ))),
        }
    }

    /// Its name as errors begin with it: `crate.f`.
    pub fn path(self) -> String {
        format!("{}.{}", self.callable.crate_name(), self.callable.name)
    }

    /// What its handlers answer when XLA registers them.
    ///
    /// # Panics
    /// If they do not agree, or fail without an API table and a context, which older versions of
    /// XLA do not give them.
    pub fn metadata(self) -> Metadata {
        let Handlers {
            instantiate,
            initialize,
            execute,
        } = self.handlers;
        let handlers = [Some(instantiate), initialize, Some(execute)];
        let answers = handlers.into_iter().flatten().flat_map(|handler| {
            let tables = MINOR_VERSIONS.map(|minor| Some(host::table(minor)));
            let tables = tables.into_iter().chain([None]);
            tables.map(move |table| host_frame::metadata(handler, table))
        });
        let mut answers: Vec<_> = answers.collect();
        answers.dedup();
        match answers[..] {
            [(major, minor, traits)] => Metadata {
                api_version: (major, minor),
                command_buffer_compatible: traits & sys::COMMAND_BUFFER_COMPATIBLE != 0,
            },
            _ => panic!("the handlers of `{}` answer {answers:?}", self.path()),
        }
    }

    /// A call of it, whose arguments are still to be given.
    pub fn call(self) -> Call {
        Call::new(self)
    }
}
