//! XLA's FFI C API as plain `#[repr(C)]` structs.
//!
//! Written from the layout of `xla/ffi/api/c_api.h`, API versions 0.1 to 0.5. The
//! asserts at the end pin every size and offset for 64-bit targets. A struct's
//! `STRUCT_SIZE` is XLA's notion of its size: the end of the last field, without
//! tail padding.

use std::ffi::{c_char, c_void};

/// A handler stage: `extern "C" fn(frame) -> error`, null for success.
pub type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut Error;

/// Opaque `XLA_FFI_Error`.
#[repr(C)]
pub struct Error {
    _opaque: [u8; 0],
}

/// Opaque `XLA_FFI_ExecutionContext`.
#[repr(C)]
pub struct ExecutionContext {
    _opaque: [u8; 0],
}

/// `XLA_FFI_ExecutionStage` values.
pub mod stage {
    pub const INSTANTIATE: i32 = 0;
    pub const INITIALIZE: i32 = 2;
    pub const EXECUTE: i32 = 3;
}

/// `XLA_FFI_Extension_Type` of the metadata query.
pub const EXTENSION_METADATA: i32 = 1;
/// `XLA_FFI_Handler_TraitsBits`: XLA may capture EXECUTE into its command buffers.
pub const COMMAND_BUFFER_COMPATIBLE: u32 = 1;
/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
pub const BUFFER: i32 = 1;

/// `XLA_FFI_AttrType` values.
pub mod attr_type {
    pub const ARRAY: i32 = 1;
    pub const SCALAR: i32 = 3;
    pub const STRING: i32 = 4;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExtensionBase {
    pub struct_size: usize,
    pub ty: i32,
    pub next: *mut ExtensionBase,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ApiVersion {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub major_version: i32,
    pub minor_version: i32,
}

#[repr(C)]
pub struct Metadata {
    pub struct_size: usize,
    pub api_version: ApiVersion,
    pub traits: u32,
    // `state_type_id` follows from jaxlib 0.8.0 on. It is never written: older hosts
    // do not have the field, and leaving it zero is accepted by all.
}
/// End of `traits`, which every host has.
pub const METADATA_SIZE: usize = 36;

#[repr(C)]
pub struct MetadataExtension {
    pub base: ExtensionBase,
    pub metadata: *mut Metadata,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ByteSpan {
    pub ptr: *const u8,
    pub len: usize,
}

#[repr(C)]
pub struct Scalar {
    pub dtype: i32,
    pub value: *mut c_void,
}

#[repr(C)]
pub struct Array {
    pub dtype: i32,
    pub size: usize,
    pub data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buffer {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub dtype: i32,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *mut i64,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`, which have one layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buffers {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub types: *mut i32,
    pub buffers: *mut *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attrs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub types: *mut i32,
    pub names: *mut *mut ByteSpan,
    pub attrs: *mut *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CallFrame {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub api: *const Api,
    pub ctx: *mut ExecutionContext,
    pub stage: i32,
    pub args: Buffers,
    pub rets: Buffers,
    pub attrs: Attrs,
    // `future` follows; asynchronous completion is not used, so it is never written.
}
/// End of `attrs`.
pub const CALL_FRAME_SIZE: usize = 168;

#[repr(C)]
pub struct ErrorCreateArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub message: *const c_char,
    pub errc: i32,
}
impl ErrorCreateArgs {
    pub const STRUCT_SIZE: usize = 28;
}

#[repr(C)]
pub struct ErrorGetMessageArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub error: *mut Error,
    pub message: *const c_char,
}
impl ErrorGetMessageArgs {
    pub const STRUCT_SIZE: usize = 32;
}

#[repr(C)]
pub struct ErrorDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub error: *mut Error,
}
impl ErrorDestroyArgs {
    pub const STRUCT_SIZE: usize = 24;
}

#[repr(C)]
pub struct StreamGetArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub stream: *mut c_void,
}
impl StreamGetArgs {
    pub const STRUCT_SIZE: usize = 32;
}

#[repr(C)]
pub struct ThreadPoolScheduleArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub task: unsafe extern "C" fn(*mut c_void),
    pub data: *mut c_void,
}
impl ThreadPoolScheduleArgs {
    pub const STRUCT_SIZE: usize = 40;
}

#[repr(C)]
pub struct ThreadPoolNumThreadsArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub num_threads: *mut i64,
}
impl ThreadPoolNumThreadsArgs {
    pub const STRUCT_SIZE: usize = 32;
}

#[repr(C)]
pub struct DeviceOrdinalGetArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub device_ordinal: i32,
}
impl DeviceOrdinalGetArgs {
    pub const STRUCT_SIZE: usize = 28;
}

#[repr(C)]
pub struct RunIdGetArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub run_id: i64,
}
impl RunIdGetArgs {
    pub const STRUCT_SIZE: usize = 32;
}

#[repr(C)]
pub struct TypeId {
    pub type_id: i64,
}

/// `XLA_FFI_TypeInfo` from API 0.2 on.
#[repr(C)]
pub struct TypeInfo {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub deleter: unsafe extern "C" fn(*mut c_void),
}
impl TypeInfo {
    pub const STRUCT_SIZE: usize = 24;
}

#[repr(C)]
pub struct TypeRegisterArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub name: ByteSpan,
    pub type_id: *mut TypeId,
    pub type_info: *const TypeInfo,
}
impl TypeRegisterArgs {
    /// API 0.1: without `type_info`.
    pub const STRUCT_SIZE_0_1: usize = 40;
    pub const STRUCT_SIZE: usize = 48;
}

/// `State_Set` of API 0.1, where the deleter travels with the state.
#[repr(C)]
pub struct StateSetArgs01 {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub type_id: *const TypeId,
    pub state: *mut c_void,
    pub deleter: unsafe extern "C" fn(*mut c_void),
}

/// `State_Set` of API 0.2; `State_Get` of 0.1 and 0.2 has the same layout.
#[repr(C)]
pub struct StateArgs02 {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub type_id: *const TypeId,
    pub state: *mut c_void,
}

/// `State_Set` and `State_Get` from API 0.3 on, one state for each stage.
#[repr(C)]
pub struct StateArgs03 {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub ctx: *mut ExecutionContext,
    pub stage: i32,
    pub type_id: *const TypeId,
    pub state: *mut c_void,
}

/// Most entries of the API table have this shape: arguments in, error out.
pub type ApiFn<A> = unsafe extern "C" fn(*mut A) -> *mut Error;
/// An entry that this crate does not call, kept for the layout.
pub type Unused = *const c_void;

/// `XLA_FFI_Api` as of jaxlib 0.6.0; later versions only append.
#[repr(C)]
pub struct Api {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub api_version: ApiVersion,
    pub internal_api: *const c_void,
    pub error_create: Option<ApiFn<ErrorCreateArgs>>,
    pub error_get_message: Option<unsafe extern "C" fn(*mut ErrorGetMessageArgs)>,
    pub error_destroy: Option<unsafe extern "C" fn(*mut ErrorDestroyArgs)>,
    pub handler_register: Unused,
    pub stream_get: Option<ApiFn<StreamGetArgs>>,
    pub type_register: Option<ApiFn<TypeRegisterArgs>>,
    pub execution_context_get: Unused,
    /// The argument's layout depends on the API version.
    pub state_set: Option<ApiFn<c_void>>,
    /// The argument's layout depends on the API version.
    pub state_get: Option<ApiFn<c_void>>,
    pub device_memory_allocate: Unused,
    pub device_memory_free: Unused,
    pub thread_pool_schedule: Option<ApiFn<ThreadPoolScheduleArgs>>,
    pub thread_pool_num_threads: Option<ApiFn<ThreadPoolNumThreadsArgs>>,
    pub future_create: Unused,
    pub future_set_available: Unused,
    pub future_set_error: Unused,
    pub run_id_get: Option<ApiFn<RunIdGetArgs>>,
    pub device_ordinal_get: Option<ApiFn<DeviceOrdinalGetArgs>>,
}

#[cfg(target_pointer_width = "64")]
mod layout {
    use super::*;
    use std::mem::{offset_of, size_of};

    macro_rules! layout {
        ($($ty:ty { size $size:literal, $($field:ident @ $offset:literal),* $(,)? })*) => {$(
            const _: () = {
                assert!(size_of::<$ty>() == $size);
                $(assert!(offset_of!($ty, $field) == $offset);)*
            };
        )*};
    }

    layout! {
        ExtensionBase { size 24, struct_size @ 0, ty @ 8, next @ 16 }
        ApiVersion { size 24, struct_size @ 0, extension_start @ 8, major_version @ 16, minor_version @ 20 }
        Metadata { size 40, struct_size @ 0, api_version @ 8, traits @ 32 }
        MetadataExtension { size 32, base @ 0, metadata @ 24 }
        ByteSpan { size 16, ptr @ 0, len @ 8 }
        Scalar { size 16, dtype @ 0, value @ 8 }
        Array { size 24, dtype @ 0, size @ 8, data @ 16 }
        Buffer { size 48, struct_size @ 0, extension_start @ 8, dtype @ 16, data @ 24, rank @ 32, dims @ 40 }
        Buffers { size 40, struct_size @ 0, extension_start @ 8, size @ 16, types @ 24, buffers @ 32 }
        Attrs { size 48, struct_size @ 0, extension_start @ 8, size @ 16, types @ 24, names @ 32, attrs @ 40 }
        CallFrame { size 168, struct_size @ 0, extension_start @ 8, api @ 16, ctx @ 24, stage @ 32, args @ 40, rets @ 80, attrs @ 120 }
        ErrorCreateArgs { size 32, struct_size @ 0, extension_start @ 8, message @ 16, errc @ 24 }
        ErrorGetMessageArgs { size 32, struct_size @ 0, extension_start @ 8, error @ 16, message @ 24 }
        ErrorDestroyArgs { size 24, struct_size @ 0, extension_start @ 8, error @ 16 }
        StreamGetArgs { size 32, struct_size @ 0, extension_start @ 8, ctx @ 16, stream @ 24 }
        ThreadPoolScheduleArgs { size 40, struct_size @ 0, extension_start @ 8, ctx @ 16, task @ 24, data @ 32 }
        ThreadPoolNumThreadsArgs { size 32, struct_size @ 0, extension_start @ 8, ctx @ 16, num_threads @ 24 }
        DeviceOrdinalGetArgs { size 32, struct_size @ 0, extension_start @ 8, ctx @ 16, device_ordinal @ 24 }
        RunIdGetArgs { size 32, struct_size @ 0, extension_start @ 8, ctx @ 16, run_id @ 24 }
        TypeId { size 8, type_id @ 0 }
        TypeInfo { size 24, struct_size @ 0, extension_start @ 8, deleter @ 16 }
        TypeRegisterArgs { size 48, struct_size @ 0, extension_start @ 8, name @ 16, type_id @ 32, type_info @ 40 }
        StateSetArgs01 { size 48, struct_size @ 0, extension_start @ 8, ctx @ 16, type_id @ 24, state @ 32, deleter @ 40 }
        StateArgs02 { size 40, struct_size @ 0, extension_start @ 8, ctx @ 16, type_id @ 24, state @ 32 }
        StateArgs03 { size 48, struct_size @ 0, extension_start @ 8, ctx @ 16, stage @ 24, type_id @ 32, state @ 40 }
        Api { size 192, struct_size @ 0, extension_start @ 8, api_version @ 16, internal_api @ 40,
              error_create @ 48, error_get_message @ 56, error_destroy @ 64, handler_register @ 72,
              stream_get @ 80, type_register @ 88, execution_context_get @ 96, state_set @ 104,
              state_get @ 112, device_memory_allocate @ 120, device_memory_free @ 128,
              thread_pool_schedule @ 136, thread_pool_num_threads @ 144, future_create @ 152,
              future_set_available @ 160, future_set_error @ 168, run_id_get @ 176,
              device_ordinal_get @ 184 }
    }
}
