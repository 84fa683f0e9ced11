//! The callables that are linked into this library.

use crate::ffi::entry;
use crate::ffi::slot::{self, Slot};
use crate::ffi::sys;
use crate::manifest;
use crate::packed::{self, PackedType};
use crate::param::{Body, BuildState, Definition};
use crate::plan::Plan;
use crate::signature::{Callable, Platform};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::mem::offset_of;
use std::sync::OnceLock;

/// The version of the exported symbols and of the manifest.
pub(crate) const ABI_VERSION: u32 = 1;

/// What the attribute submits of a callable.
pub struct Declaration {
    pub(crate) text: &'static str,
    types: &'static [PackedType],
    keys: Option<&'static Callable>,
    build_state: Option<BuildState>,
    body: Body,
    pub(crate) slot: &'static Slot,
    handler: sys::Handler,
    absent: sys::Handler,
}

inventory::collect!(Declaration);

impl Declaration {
    /// That of a definition.
    pub const fn new<D: Definition>() -> Declaration {
        Declaration {
            text: D::TEXT,
            types: D::PACKED,
            keys: D::KEYS,
            build_state: D::STATE,
            body: D::CALL,
            slot: slot::of::<D>(),
            handler: entry::handler::<D>,
            absent: entry::absent::<D>,
        }
    }

    pub(crate) fn registration(&'static self) -> &'static Registration {
        self.slot.get_or_fill(|| {
            let keys = self.keys.unwrap_or(&Callable::DEFAULT);
            let Some(callable) = packed::unpack(self.text, self.types, keys) else {
                entry::fatal(&format!(
                    "internal error: {:?} is not the description of a callable",
                    self.text
                ))
            };
            Registration {
                body: self.body,
                plan: Plan::new(&callable),
                callable: Box::leak(Box::new(callable)),
                build_state: self.build_state,
                handler: self.handler,
                absent: self.absent,
            }
        })
    }
}

/// One callable: what its handlers need, and its description. Calls read the first fields.
#[derive(Debug)]
#[repr(C)]
pub struct Registration {
    pub(crate) body: Body,
    pub(crate) plan: Plan,
    pub(crate) callable: &'static Callable,
    pub(crate) build_state: Option<BuildState>,
    /// For all stages.
    handler: sys::Handler,
    /// For all stages of its target on the other platform, if that has no callable of the name.
    absent: sys::Handler,
}

// With the byte in front of it in a slot, in whole words: the short cut reads two cache lines, if
// there are not more than 40 numbers.
const _: () = assert!(8 + offset_of!(Registration, plan) + Plan::NUMBERS + 40 <= 128);

/// The handlers of one callable.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    pub(crate) instantiate: sys::Handler,
    /// None on the CPU, where XLA does not call it.
    pub(crate) initialize: Option<sys::Handler>,
    pub(crate) execute: sys::Handler,
}

impl Handlers {
    pub(crate) fn stage(&self, stage: i32) -> Option<sys::Handler> {
        match stage {
            sys::stage::INSTANTIATE => Some(self.instantiate),
            sys::stage::INITIALIZE => self.initialize,
            sys::stage::EXECUTE => Some(self.execute),
            _ => None,
        }
    }
}

/// A module of kernels, as `cuda::module!` submits it.
#[cfg(feature = "_cuda")]
pub struct ModuleRegistration(pub &'static crate::cuda::Module);

#[cfg(feature = "_cuda")]
inventory::collect!(ModuleRegistration);

impl Registration {
    pub(crate) fn handlers(&'static self) -> Handlers {
        Handlers {
            instantiate: self.handler,
            initialize: match self.callable.platform() {
                Platform::Cpu => None,
                Platform::Cuda => Some(self.handler),
            },
            execute: self.handler,
        }
    }

    fn absent(&self) -> Handlers {
        Handlers {
            instantiate: self.absent,
            initialize: None,
            execute: self.absent,
        }
    }
}

/// What this library exports.
pub(crate) struct Library {
    /// In the order that the manifest numbers them.
    pub(crate) handlers: Vec<Handlers>,
    /// Those of the first handlers, in their order.
    pub(crate) callables: Vec<&'static Callable>,
    pub(crate) manifest: CString,
}

/// A target: the callables of one name, one for each platform.
pub(crate) struct Target {
    pub(crate) callables: Vec<(&'static Callable, usize)>,
    /// The platform that has none of them, with the place of its handlers.
    pub(crate) absent: Option<(Platform, usize)>,
}

/// The library, put together once.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let registrations = registrations();
        let (mut targets, errors) = targets(&registrations);
        let mut handlers: Vec<_> = registrations.iter().map(|r| r.handlers()).collect();
        for target in &mut targets {
            if let [(callable, index)] = target.callables[..] {
                target.absent = Some((callable.platform().other(), handlers.len()));
                handlers.push(registrations[index].absent());
            }
        }
        let text = manifest::write(&targets, &errors);
        Library {
            handlers,
            callables: registrations.iter().map(|r| r.callable).collect(),
            manifest: CString::new(text).unwrap_or_default(),
        }
    })
}

/// All registrations, in an order that does not depend on the linker's.
pub(crate) fn registrations() -> Vec<&'static Registration> {
    let mut all: Vec<_> = inventory::iter::<Declaration>
        .into_iter()
        .map(Declaration::registration)
        .collect();
    all.sort_by_key(|r| {
        let c = r.callable;
        (c.crate_name(), c.name, c.platform(), c.file, c.line)
    });
    all
}

/// Groups registrations into targets, and says what is wrong with them.
fn targets(registrations: &[&'static Registration]) -> (Vec<Target>, Vec<String>) {
    let mut groups: BTreeMap<_, Vec<(&Callable, usize)>> = BTreeMap::new();
    for (index, registration) in registrations.iter().enumerate() {
        let callable = registration.callable;
        let group = groups.entry((callable.crate_name(), callable.name));
        group.or_default().push((callable, index));
    }
    let mut errors = Vec::new();
    for ((krate, name), group) in &groups {
        for pair in group.windows(2) {
            let (a, b) = (pair[0].0, pair[1].0);
            let places = format!("{}:{} and {}:{}", a.file, a.line, b.file, b.line);
            if a.platform() == b.platform() {
                errors.push(format!(
                    "`{krate}.{name}` is defined twice for {}, at {places}: rename one, or give \
                     it another `name = \"...\"`",
                    a.platform().name()
                ));
            } else if let Some(difference) = manifest::difference(a, b) {
                errors.push(format!(
                    "`{krate}.{name}` has different {difference} on {} and {}, at {places}: they \
                     must agree, or have different names",
                    a.platform().name(),
                    b.platform().name()
                ));
            }
        }
    }
    let targets = groups
        .into_values()
        .map(|callables| Target {
            callables,
            absent: None,
        })
        .collect();
    (targets, errors)
}
