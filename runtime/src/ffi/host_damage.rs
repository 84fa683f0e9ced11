//! Frames that are other than XLA makes them.
//!
//! What is changed stays a frame that a handler can check: pointers are null, or point to what their
//! kind says, and there is memory for every shape that is possible.

use super::host_frame::{AttrSpec, BufferSpec, FrameSpec};
use super::host_table::OtherTable;
use super::sys::{self, attr_type};
use std::ptr;

/// One field of a frame that is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    FrameSize(usize),
    Stage(i32),
    /// An extension in front that nobody knows.
    Extension,
    Table(OtherTable),
    /// An attribute of the program is another, or missing.
    Attribute(String, Option<AttrSpec>),
    List(List, ListChange),
    Buffer(List, usize, BufferChange),
    Attrs(AttrsChange),
    /// Of the attribute at a position, by name.
    Attr(usize, AttrChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Args,
    Rets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListChange {
    StructSize(usize),
    Size(i64),
    NullTypes,
    NullBuffers,
    Type(usize, i32),
    Null(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferChange {
    StructSize(usize),
    Dtype(i32),
    NullData,
    /// At an address with these low bits, which are less than its alignment.
    Shifted(usize),
    /// At the address of another, if there is room.
    Over(List, usize),
    Rank(i64),
    NullDims,
    Dim(usize, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttrsChange {
    StructSize(usize),
    Size(i64),
    NullTypes,
    NullNames,
    NullValues,
    /// Two of them in each other's place.
    Swapped(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttrChange {
    Type(i32),
    Null,
    NullName,
    NullNameBytes,
    NameLength(usize),
    NameNotUtf8,
    /// The element type of a scalar or array.
    Dtype(i32),
    /// Of a scalar, array or string.
    NullData,
    /// Of an array or string.
    Length(usize),
    /// The data of an array, at an odd address.
    Crooked,
    NotUtf8,
}

const NOT_UTF8: &[u8] = b"\xFF\xFE";

impl Change {
    /// The table of the call, if it is another.
    pub(crate) fn table(&self) -> Option<&'static sys::Api> {
        match self {
            Change::Table(table) => Some(table.get()),
            _ => None,
        }
    }

    /// Changes what is known before the frame is built.
    pub(crate) fn to_spec(&self, frame: &mut FrameSpec) {
        match self {
            Change::FrameSize(size) => frame.struct_size = *size,
            Change::Stage(stage) => frame.stage = *stage,
            Change::Extension => frame.unknown_extension = true,
            Change::Attribute(name, value) => {
                frame.attrs.retain(|(other, _)| other != name);
                let value = value.clone().map(|value| (name.clone(), value));
                frame.attrs.extend(value);
            }
            Change::Buffer(list, index, change) => {
                let Some(address) = frame.buffer(*list, *index).map(|buffer| buffer.data) else {
                    return;
                };
                let address = match change {
                    BufferChange::NullData => ptr::null_mut(),
                    BufferChange::Shifted(by) => address.map_addr(|address| address | by),
                    BufferChange::Over(list, index) => {
                        frame.buffer(*list, *index).map_or(address, |to| to.data)
                    }
                    _ => address,
                };
                let Some(buffer) = frame.buffer(*list, *index) else {
                    return;
                };
                buffer.data = address;
                match *change {
                    BufferChange::Dtype(dtype) => buffer.dtype = dtype,
                    BufferChange::Dim(axis, size) => buffer.dims[axis] = size,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Changes a field of the frame.
    ///
    /// # Safety
    /// The frame is being lent by `FrameSpec::with_frame`, with this number of attributes, and
    /// nothing has changed it but this.
    pub(crate) unsafe fn to_frame(&self, frame: &mut sys::CallFrame, num_attrs: usize) {
        // SAFETY: the caller's promise; positions are compared with the lists' sizes.
        unsafe {
            match *self {
                Change::List(list, change) => change.apply(frame.list(list)),
                Change::Buffer(list, index, change) => {
                    let list = frame.list(list);
                    if !list.buffers.is_null() && (0..list.size).contains(&(index as i64)) {
                        let buffer = (*list.buffers.add(index)).cast::<sys::Buffer>();
                        buffer.as_mut().into_iter().for_each(|b| change.apply(b));
                    }
                }
                Change::Attrs(change) => change.apply(&mut frame.attrs, num_attrs),
                Change::Attr(index, change) => {
                    let attrs = &mut frame.attrs;
                    let is_whole = !attrs.types.is_null() && !attrs.attrs.is_null();
                    if is_whole && !attrs.names.is_null() && index < num_attrs {
                        change.apply(attrs, index);
                    }
                }
                _ => {}
            }
        }
    }
}

impl FrameSpec {
    fn buffer(&mut self, list: List, index: usize) -> Option<&mut BufferSpec> {
        match list {
            List::Args => self.args.get_mut(index),
            List::Rets => self.rets.get_mut(index),
        }
    }
}

impl sys::CallFrame {
    fn list(&mut self, list: List) -> &mut sys::Buffers {
        match list {
            List::Args => &mut self.args,
            List::Rets => &mut self.rets,
        }
    }
}

impl ListChange {
    /// # Safety
    /// As for [`Change::to_frame`].
    unsafe fn apply(self, list: &mut sys::Buffers) {
        let has = |index: usize| (0..list.size).contains(&(index as i64));
        match self {
            ListChange::StructSize(size) => list.struct_size = size,
            ListChange::Size(size) => list.size = size,
            ListChange::NullTypes => list.types = ptr::null_mut(),
            ListChange::NullBuffers => list.buffers = ptr::null_mut(),
            ListChange::Type(index, ty) if has(index) && !list.types.is_null() => {
                // SAFETY: the list has this entry.
                unsafe { *list.types.add(index) = ty }
            }
            ListChange::Null(index) if has(index) && !list.buffers.is_null() => {
                // SAFETY: the list has this entry.
                unsafe { *list.buffers.add(index) = ptr::null_mut() }
            }
            ListChange::Type(..) | ListChange::Null(_) => {}
        }
    }
}

impl BufferChange {
    fn apply(self, buffer: &mut sys::Buffer) {
        match self {
            BufferChange::StructSize(size) => buffer.struct_size = size,
            BufferChange::Rank(rank) => buffer.rank = rank,
            BufferChange::NullDims => buffer.dims = ptr::null_mut(),
            BufferChange::Dtype(_)
            | BufferChange::NullData
            | BufferChange::Shifted(_)
            | BufferChange::Over(..)
            | BufferChange::Dim(..) => {}
        }
    }
}

impl AttrsChange {
    /// # Safety
    /// As for [`Change::to_frame`].
    unsafe fn apply(self, attrs: &mut sys::Attrs, num_attrs: usize) {
        match self {
            AttrsChange::StructSize(size) => attrs.struct_size = size,
            // The lists have one entry more; what none can have is refused unread.
            AttrsChange::Size(size) => {
                let is_refused = !(0..1 << 48).contains(&size);
                if is_refused || size <= num_attrs as i64 + 1 {
                    attrs.size = size;
                }
            }
            AttrsChange::NullTypes => attrs.types = ptr::null_mut(),
            AttrsChange::NullNames => attrs.names = ptr::null_mut(),
            AttrsChange::NullValues => attrs.attrs = ptr::null_mut(),
            AttrsChange::Swapped(a, b) => {
                let is_whole =
                    !attrs.types.is_null() && !attrs.names.is_null() && !attrs.attrs.is_null();
                if is_whole && a.max(b) < num_attrs {
                    // SAFETY: the lists have these entries.
                    unsafe {
                        ptr::swap(attrs.types.add(a), attrs.types.add(b));
                        ptr::swap(attrs.names.add(a), attrs.names.add(b));
                        ptr::swap(attrs.attrs.add(a), attrs.attrs.add(b));
                    }
                }
            }
        }
    }
}

impl AttrChange {
    /// # Safety
    /// As for [`Change::to_frame`], and the lists are there and have an entry at `index`.
    unsafe fn apply(self, attrs: &mut sys::Attrs, index: usize) {
        // SAFETY: the lists have this entry; a value that is not null is what its type says.
        unsafe {
            let name = (*attrs.names.add(index)).as_mut();
            let value = *attrs.attrs.add(index);
            match (self, *attrs.types.add(index)) {
                (AttrChange::Type(ty), _) => *attrs.types.add(index) = ty,
                (AttrChange::Null, _) => *attrs.attrs.add(index) = ptr::null_mut(),
                (AttrChange::NullName, _) => *attrs.names.add(index) = ptr::null_mut(),
                (AttrChange::NullNameBytes, _) => {
                    name.into_iter().for_each(|name| name.ptr = ptr::null());
                }
                (AttrChange::NameLength(len), _) => {
                    name.into_iter().for_each(|name| name.len = len);
                }
                (AttrChange::NameNotUtf8, _) => name.into_iter().for_each(not_utf8),
                (change, attr_type::SCALAR) => {
                    let scalar = value.cast::<sys::Scalar>().as_mut();
                    scalar.into_iter().for_each(|scalar| match change {
                        AttrChange::Dtype(dtype) => scalar.dtype = dtype,
                        AttrChange::NullData => scalar.value = ptr::null_mut(),
                        _ => {}
                    });
                }
                (change, attr_type::ARRAY) => {
                    let array = value.cast::<sys::Array>().as_mut();
                    array.into_iter().for_each(|array| match change {
                        AttrChange::Dtype(dtype) => array.dtype = dtype,
                        AttrChange::NullData => array.data = ptr::null_mut(),
                        AttrChange::Length(size) => array.size = size,
                        AttrChange::Crooked => array.data = array.data.wrapping_byte_add(1),
                        _ => {}
                    });
                }
                (change, attr_type::STRING) => {
                    let text = value.cast::<sys::ByteSpan>().as_mut();
                    text.into_iter().for_each(|text| match change {
                        AttrChange::NullData => text.ptr = ptr::null(),
                        AttrChange::Length(len) => text.len = len,
                        AttrChange::NotUtf8 => not_utf8(text),
                        _ => {}
                    });
                }
                _ => {}
            }
        }
    }
}

fn not_utf8(text: &mut sys::ByteSpan) {
    (text.ptr, text.len) = (NOT_UTF8.as_ptr(), NOT_UTF8.len());
}
