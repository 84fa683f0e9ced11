//! Call frames made in Rust, right ones and hostile ones.

use super::host::Context;
#[cfg(any(test, fuzzing))]
use super::host::{self, Failure};
use super::sys::{self, attr_type};
use crate::dtype::DataType;
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
    #[cfg(any(test, fuzzing))]
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

    /// Builds the frame, for as long as `work` runs. Its lists, and the dimensions of its buffers,
    /// have one entry more than they say, so that `work` may raise their sizes by one.
    pub(crate) fn with_frame<T>(
        &mut self,
        api: *const sys::Api,
        context: &Context,
        work: impl FnOnce(&mut sys::CallFrame) -> T,
    ) -> T {
        // XLA sorts attributes by name.
        self.attrs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut dims: [Vec<_>; 2] = [&self.args, &self.rets].map(|list| spare_dims(list));
        let [arg_dims, ret_dims] = &mut dims;
        let mut args = buffers(&self.args, arg_dims);
        let mut rets = buffers(&self.rets, ret_dims);
        let mut args = Pointers::new(&mut args);
        let mut rets = Pointers::new(&mut rets);
        let mut attrs: Vec<_> = self
            .attrs
            .iter_mut()
            .map(|(_, attr)| Attr::new(attr))
            .collect();
        let num_attrs = attrs.len();
        let mut attr_types: Vec<_> = attrs.iter().map(Attr::ty).chain([0]).collect();
        let null = [ptr::null_mut()];
        let mut attr_pointers: Vec<_> = attrs.iter_mut().map(Attr::as_ptr).chain(null).collect();
        let mut names: Vec<_> = self.attrs.iter().map(|(name, _)| span(name)).collect();
        let names = names.iter_mut().map(ptr::from_mut);
        let mut name_pointers: Vec<_> = names.chain([ptr::null_mut()]).collect();
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
                size: num_attrs as i64,
                types: attr_types.as_mut_ptr(),
                names: name_pointers.as_mut_ptr(),
                attrs: attr_pointers.as_mut_ptr(),
            },
        };
        work(&mut frame)
    }
}

/// Asks a handler for its metadata: major and minor version, and the traits.
///
/// As XLA does, without a context, with an extension in front that nobody knows, and on old versions
/// without a table.
pub(crate) fn metadata(handler: sys::Handler, api: Option<&'static sys::Api>) -> (i32, i32, u32) {
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
        api: api.map_or(ptr::null(), ptr::from_ref),
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

/// The dimensions of buffers, with a 1 behind them.
fn spare_dims(list: &[BufferSpec]) -> Vec<Vec<i64>> {
    let dims = list.iter().map(|spec| spec.dims.iter().copied());
    dims.map(|dims| dims.chain([1]).collect()).collect()
}

fn buffers(list: &[BufferSpec], dims: &mut [Vec<i64>]) -> Vec<sys::Buffer> {
    let pairs = list.iter().zip(dims);
    pairs
        .map(|(spec, dims)| sys::Buffer {
            struct_size: size_of::<sys::Buffer>(),
            extension_start: ptr::null_mut(),
            dtype: spec.dtype,
            data: spec.data.cast(),
            rank: spec.dims.len() as i64,
            // XLA promises nothing about `dims` where there are none.
            dims: if spec.dims.is_empty() {
                ptr::null_mut()
            } else {
                dims.as_mut_ptr()
            },
        })
        .collect()
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
    fn new(buffers: &mut [sys::Buffer]) -> Pointers {
        let types = [vec![sys::BUFFER; buffers.len()], vec![0]].concat();
        let pointers = buffers
            .iter_mut()
            .map(|buffer| ptr::from_mut(buffer).cast());
        Pointers {
            types,
            pointers: pointers.chain([ptr::null_mut()]).collect(),
        }
    }

    fn buffers(&mut self) -> sys::Buffers {
        sys::Buffers {
            struct_size: size_of::<sys::Buffers>(),
            extension_start: ptr::null_mut(),
            size: self.types.len() as i64 - 1,
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
