//! What the attribute's expansion refers to. Not public API.

pub use crate::check;
pub use crate::ffi::frame::Call;
pub use crate::param::{Definition, FfiArg, IntoResult};
pub use crate::plan::slot;
pub use crate::registry::Registration;
pub use crate::signature::{
    BufferType, Callable, Dim, DimOp, GraphCacheMax, GraphMode, Kind, Length, Param, ParamType,
    Platform, StaticType,
};
pub use inventory;
