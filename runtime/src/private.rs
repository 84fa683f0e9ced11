//! What the attribute's expansion refers to. Not public API.

pub use crate::check;
pub use crate::ffi::frame::Call;
pub use crate::param::{Definition, FfiArg, IntoResult, any};
pub use crate::plan::slot;
#[cfg(feature = "_cuda")]
pub use crate::registry::ModuleRegistration;
pub use crate::registry::Registration;
pub use crate::signature::{
    BufferType, Callable, Dim, DimOp, GraphCacheMax, GraphMode, Kind, Length, ModuleUse, Param,
    ParamType, Platform, StaticType,
};
pub use crate::state::{Built, Holder, NoState};
pub use crate::vjp::require_vjp;
pub use inventory;
