//! Call frames made in Rust, right ones and hostile ones.

use super::host::{self, Context, Failure};
use super::sys::{self, attr_type};
use crate::dtype::DataType;
use crate::element::Element;
use std::ffi::c_void;
use std::ptr;

/// An attribute as Python puts it into the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttrSpec {
    I64(i64),
    I64Array(Vec<i64>),
    U8Array(Vec<u8>),
    Str(String),
}

/// A buffer: anything that a host could hand over, sound or not.
#[derive(Clone, Debug)]
pub(crate) struct BufferSpec {
    pub(crate) dtype: i32,
    pub(crate) dims: Vec<i64>,
    pub(crate) data: *mut u8,
}

/// A frame to be.
#[derive(Clone, Debug)]
pub(crate) struct FrameSpec {
    pub(crate) struct_size: usize,
    pub(crate) stage: i32,
    pub(crate) args: Vec<BufferSpec>,
    pub(crate) rets: Vec<BufferSpec>,
    pub(crate) attrs: Vec<(String, AttrSpec)>,
    /// An extension of a type that nobody knows in front.
    pub(crate) unknown_extension: bool,
}

impl FrameSpec {
    pub(crate) fn new(stage: i32) -> FrameSpec {
        FrameSpec {
            struct_size: sys::CALL_FRAME_SIZE,
            stage,
            args: Vec::new(),
            rets: Vec::new(),
            attrs: Vec::new(),
            unknown_extension: false,
        }
    }

    /// Builds the frame and calls a handler with it.
    ///
    /// # Safety
    /// Each buffer's `data` is null or points to memory for its type and dimensions, which
    /// may be read, and for `rets` written, during the call.
    pub(crate) unsafe fn call(
        &mut self,
        handler: sys::Handler,
        api: *const sys::Api,
        context: &Context,
    ) -> Result<(), Failure> {
        // SAFETY: `with_frame` gives a complete frame, and the caller promises sound buffers.
        let error = self.with_frame(api, context, |frame| unsafe { handler(frame) });
        // SAFETY: the handler ran with a table of `host`.
        unsafe { host::take_error(error) }.map_or(Ok(()), Err)
    }

    /// Builds the frame, for as long as `work` runs.
    pub(crate) fn with_frame<T>(
        &mut self,
        api: *const sys::Api,
        context: &Context,
        work: impl FnOnce(&mut sys::CallFrame) -> T,
    ) -> T {
        // XLA sorts attributes by name.
        self.attrs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut args: Vec<_> = self.args.iter_mut().map(buffer).collect();
        let mut rets: Vec<_> = self.rets.iter_mut().map(buffer).collect();
        let mut args = Pointers::new(&mut args, sys::BUFFER);
        let mut rets = Pointers::new(&mut rets, sys::BUFFER);
        let mut attrs: Vec<_> = self
            .attrs
            .iter_mut()
            .map(|(_, attr)| Attr::new(attr))
            .collect();
        let mut attr_types: Vec<_> = attrs.iter().map(Attr::ty).collect();
        let mut attr_pointers: Vec<_> = attrs.iter_mut().map(Attr::as_ptr).collect();
        let mut names: Vec<_> = self.attrs.iter().map(|(name, _)| span(name)).collect();
        let mut name_pointers: Vec<_> = names.iter_mut().map(ptr::from_mut).collect();
        let mut extension = sys::ExtensionBase {
            struct_size: size_of::<sys::ExtensionBase>(),
            ty: 12345,
            next: ptr::null_mut(),
        };
        let mut frame = sys::CallFrame {
            struct_size: self.struct_size,
            extension_start: if self.unknown_extension {
                &mut extension
            } else {
                ptr::null_mut()
            },
            api,
            ctx: context.as_ptr(),
            stage: self.stage,
            args: args.buffers(),
            rets: rets.buffers(),
            attrs: sys::Attrs {
                struct_size: size_of::<sys::Attrs>(),
                extension_start: ptr::null_mut(),
                size: attr_types.len() as i64,
                types: attr_types.as_mut_ptr(),
                names: name_pointers.as_mut_ptr(),
                attrs: attr_pointers.as_mut_ptr(),
            },
        };
        work(&mut frame)
    }
}

/// Asks a handler for its metadata: major and minor version, and the traits.
#[cfg(test)]
pub(crate) fn metadata(handler: sys::Handler, api: *const sys::Api) -> (i32, i32, u32) {
    let mut metadata = sys::Metadata {
        struct_size: sys::METADATA_SIZE,
        api_version: sys::ApiVersion {
            struct_size: size_of::<sys::ApiVersion>(),
            extension_start: ptr::null_mut(),
            major_version: -1,
            minor_version: -1,
        },
        traits: u32::MAX,
    };
    let mut query = sys::MetadataExtension {
        base: sys::ExtensionBase {
            struct_size: size_of::<sys::MetadataExtension>(),
            ty: sys::EXTENSION_METADATA,
            next: ptr::null_mut(),
        },
        metadata: &mut metadata,
    };
    let mut unknown = sys::ExtensionBase {
        struct_size: size_of::<sys::ExtensionBase>(),
        ty: 12345,
        next: ptr::from_mut(&mut query).cast(),
    };
    let empty = || sys::Buffers {
        struct_size: size_of::<sys::Buffers>(),
        extension_start: ptr::null_mut(),
        size: 0,
        types: ptr::null_mut(),
        buffers: ptr::null_mut(),
    };
    let mut frame = sys::CallFrame {
        struct_size: sys::CALL_FRAME_SIZE,
        extension_start: &mut unknown,
        api,
        ctx: ptr::null_mut(),
        stage: sys::stage::EXECUTE,
        args: empty(),
        rets: empty(),
        attrs: sys::Attrs {
            struct_size: size_of::<sys::Attrs>(),
            extension_start: ptr::null_mut(),
            size: 0,
            types: ptr::null_mut(),
            names: ptr::null_mut(),
            attrs: ptr::null_mut(),
        },
    };
    // SAFETY: a query as XLA makes it: no context, and on old versions no table.
    let error = unsafe { handler(&mut frame) };
    assert!(error.is_null(), "the metadata query failed");
    let version = metadata.api_version;
    (
        version.major_version,
        version.minor_version,
        metadata.traits,
    )
}

fn buffer(spec: &mut BufferSpec) -> sys::Buffer {
    sys::Buffer {
        struct_size: size_of::<sys::Buffer>(),
        extension_start: ptr::null_mut(),
        dtype: spec.dtype,
        data: spec.data.cast(),
        rank: spec.dims.len() as i64,
        // XLA promises nothing about `dims` where there are none.
        dims: if spec.dims.is_empty() {
            ptr::null_mut()
        } else {
            spec.dims.as_mut_ptr()
        },
    }
}

fn span(text: &str) -> sys::ByteSpan {
    sys::ByteSpan {
        ptr: text.as_ptr(),
        len: text.len(),
    }
}

struct Pointers {
    types: Vec<i32>,
    pointers: Vec<*mut c_void>,
}

impl Pointers {
    fn new<T>(values: &mut [T], ty: i32) -> Pointers {
        Pointers {
            types: vec![ty; values.len()],
            pointers: values.iter_mut().map(|v| ptr::from_mut(v).cast()).collect(),
        }
    }

    fn buffers(&mut self) -> sys::Buffers {
        sys::Buffers {
            struct_size: size_of::<sys::Buffers>(),
            extension_start: ptr::null_mut(),
            size: self.types.len() as i64,
            types: self.types.as_mut_ptr(),
            buffers: self.pointers.as_mut_ptr(),
        }
    }
}

enum Attr {
    Scalar(sys::Scalar),
    Array(sys::Array),
    Str(sys::ByteSpan),
}

impl Attr {
    fn new(spec: &mut AttrSpec) -> Attr {
        match spec {
            AttrSpec::I64(value) => Attr::Scalar(sys::Scalar {
                dtype: DataType::S64 as i32,
                value: ptr::from_mut(value).cast(),
            }),
            AttrSpec::I64Array(values) => Attr::array(DataType::S64, values),
            AttrSpec::U8Array(values) => Attr::array(DataType::U8, values),
            AttrSpec::Str(text) => Attr::Str(span(text)),
        }
    }

    fn array<T>(dtype: DataType, values: &mut [T]) -> Attr {
        Attr::Array(sys::Array {
            dtype: dtype as i32,
            size: values.len(),
            // As XLA does.
            data: if values.is_empty() {
                ptr::null_mut()
            } else {
                values.as_mut_ptr().cast()
            },
        })
    }

    fn ty(&self) -> i32 {
        match self {
            Attr::Scalar(_) => attr_type::SCALAR,
            Attr::Array(_) => attr_type::ARRAY,
            Attr::Str(_) => attr_type::STRING,
        }
    }

    fn as_ptr(&mut self) -> *mut c_void {
        match self {
            Attr::Scalar(scalar) => ptr::from_mut(scalar).cast(),
            Attr::Array(array) => ptr::from_mut(array).cast(),
            Attr::Str(text) => ptr::from_mut(text).cast(),
        }
    }
}

/// Memory for a buffer, aligned as XLA's is at least.
#[derive(Clone)]
pub(crate) struct Memory(Vec<u128>);

impl Memory {
    /// Room for `size` bytes, filled with a byte that is not a likely result.
    pub(crate) fn unwritten(size: usize) -> Memory {
        Memory(vec![
            u128::from_ne_bytes([0xA5; 16]);
            size.div_ceil(size_of::<u128>())
        ])
    }

    pub(crate) fn of<T: Element>(values: &[T]) -> Memory {
        let mut memory = Memory::unwritten(size_of_val(values));
        // SAFETY: the room is large enough and its own.
        unsafe {
            ptr::copy_nonoverlapping(values.as_ptr(), memory.as_mut_ptr().cast(), values.len())
        };
        memory
    }

    pub(crate) fn to_vec<T: Element>(&self, len: usize) -> Vec<T> {
        assert!(len * size_of::<T>() <= size_of_val(self.0.as_slice()));
        // SAFETY: there is room for `len` elements, aligned, and an `Element` may have any
        // bit pattern.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<T>(), len) }.to_vec()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// A buffer with its memory.
pub(crate) struct HostBuffer {
    pub(crate) dtype: DataType,
    pub(crate) dims: Vec<i64>,
    pub(crate) memory: Memory,
}

/// Where a result is.
pub(crate) enum HostResult {
    Own(HostBuffer),
    /// In the buffer of this operand.
    Operand(usize),
}

impl HostBuffer {
    fn spec(&mut self) -> BufferSpec {
        let numel: usize = self.dims.iter().map(|&dim| dim as usize).product();
        assert!(
            numel * self.dtype.size() <= size_of_val(self.memory.0.as_slice()),
            "an input has a shape and no data: such a call is to be instantiated, not run"
        );
        BufferSpec {
            dtype: self.dtype as i32,
            dims: self.dims.clone(),
            data: self.memory.as_mut_ptr(),
        }
    }
}

/// Runs the stages of a target as XLA does on the CPU.
pub(crate) fn run(
    (instantiate, execute): (sys::Handler, sys::Handler),
    api: &sys::Api,
    context: &Context,
    attrs: Vec<(String, AttrSpec)>,
    operands: &mut [HostBuffer],
    results: &mut [HostResult],
) -> Result<(), Failure> {
    let mut frame = FrameSpec::new(sys::stage::INSTANTIATE);
    frame.attrs = attrs;
    // SAFETY: there are no buffers.
    unsafe { frame.call(instantiate, api, context)? };
    frame.stage = sys::stage::EXECUTE;
    frame.args = operands.iter_mut().map(HostBuffer::spec).collect();
    frame.rets = results
        .iter_mut()
        .map(|result| match result {
            HostResult::Own(buffer) => buffer.spec(),
            HostResult::Operand(index) => frame.args[*index].clone(),
        })
        .collect();
    // SAFETY: `spec` checked that each buffer's own memory is large enough, and it is
    // borrowed for as long as this runs, late tasks included.
    let outcome = unsafe { frame.call(execute, api, context) };
    context.finish_tasks();
    outcome
}
