//! Reading the attributes of a call frame.

use super::sys::{self, attr_type};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::slice;

/// The attributes of one frame, which XLA sorts by name.
#[derive(Clone, Copy)]
pub(crate) struct Attrs<'a>(&'a sys::Attrs);

/// An attribute as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attr<'a> {
    I64(i64),
    I64Array(&'a [i64]),
    U8Array(&'a [u8]),
    Str(&'a str),
}

impl Attr<'_> {
    /// What it is, for error messages.
    pub(crate) fn describe(self) -> String {
        match self {
            Attr::I64(_) => "an int64".into(),
            Attr::I64Array(values) => format!("an int64 array of {}", values.len()),
            Attr::U8Array(values) => format!("a uint8 array of {}", values.len()),
            Attr::Str(_) => "a string".into(),
        }
    }
}

const S64: i32 = DataType::S64 as i32;
const U8: i32 = DataType::U8 as i32;

impl<'a> Attrs<'a> {
    /// # Safety
    /// `attrs` is what XLA's ABI says of a frame's attributes, unchanged during `'a`.
    #[inline]
    pub(crate) unsafe fn new(attrs: &'a sys::Attrs) -> Attrs<'a> {
        Attrs(attrs)
    }

    /// How many there are; 0 also for lists that are damaged.
    #[inline]
    pub(crate) fn len(self) -> usize {
        let is_damaged = self.0.types.is_null() || self.0.attrs.is_null();
        if is_damaged {
            return 0;
        }
        usize::try_from(self.0.size).unwrap_or(0)
    }

    /// The names in XLA's order.
    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        // SAFETY: there are as many names.
        let names = unsafe { array(self.0.names, self.0.size) };
        let names: &[*mut sys::ByteSpan] = names.unwrap_or_default();
        names.iter().map(|&name| {
            if name.is_null() {
                return "";
            }
            // SAFETY: a name is a span of bytes that lives as long as the frame.
            let bytes = unsafe { array((*name).ptr, (*name).len as i64) };
            std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        })
    }

    /// The type and value at a position, if it is one.
    #[inline]
    fn entry(self, index: usize) -> Option<(i32, *mut c_void)> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: the lists have that many entries.
        Some(unsafe { (*self.0.types.add(index), *self.0.attrs.add(index)) })
    }

    /// The attribute of a name, if there is one.
    pub(crate) fn get(self, name: &str) -> Result<Option<Attr<'a>>> {
        let index = self.names().position(|n| n == name);
        let found = index.map(|index| self.at(index)).transpose();
        found.map_err(|what| {
            Error::invalid_argument(format!("the attribute `{name}` is {what} in the program"))
        })
    }

    /// The number at a position that INSTANTIATE found it at.
    #[inline]
    pub(crate) fn number(self, index: usize) -> Option<i64> {
        match self.entry(index)? {
            // SAFETY: an attribute of this type has such a value.
            (attr_type::SCALAR, value) => unsafe { scalar(value) },
            _ => None,
        }
    }

    fn at(self, index: usize) -> Result<Attr<'a>, &'static str> {
        let (ty, value) = self.entry(index).ok_or("missing")?;
        if value.is_null() {
            return Err("null");
        }
        match ty {
            // SAFETY: an attribute of this type has such a value.
            attr_type::SCALAR => unsafe { scalar(value) }
                .map(Attr::I64)
                .ok_or("a scalar of another type than int64"),
            attr_type::ARRAY => {
                // SAFETY: an attribute of this type points to an `XLA_FFI_Array`.
                let values = unsafe { &*value.cast::<sys::Array>() };
                let size = values.size as i64;
                let damaged = |_| "a damaged array";
                match values.dtype {
                    // SAFETY: `data` has `size` elements of that type.
                    S64 => unsafe { array(values.data.cast(), size) }
                        .map(Attr::I64Array)
                        .map_err(damaged),
                    // SAFETY: as above.
                    U8 => unsafe { array(values.data.cast(), size) }
                        .map(Attr::U8Array)
                        .map_err(damaged),
                    _ => Err("an array of another type than int64 or uint8"),
                }
            }
            attr_type::STRING => {
                // SAFETY: an attribute of this type has such a value.
                let bytes = unsafe { string(value) }.ok_or("a damaged string")?;
                std::str::from_utf8(bytes)
                    .map(Attr::Str)
                    .map_err(|_| "a string that is not UTF-8")
            }
            _ => Err("of an unknown kind"),
        }
    }
}

/// # Safety
/// `value` is null or the value of a scalar attribute.
#[inline]
pub(super) unsafe fn scalar(value: *mut c_void) -> Option<i64> {
    // SAFETY: such a value is an `XLA_FFI_Scalar`.
    let scalar = unsafe { value.cast::<sys::Scalar>().as_ref()? };
    if scalar.dtype != S64 || scalar.value.is_null() {
        return None;
    }
    // SAFETY: the value of an S64 scalar is 8 bytes; alignment is not relied on.
    Some(unsafe { scalar.value.cast::<i64>().read_unaligned() })
}

/// # Safety
/// `value` is null or the value of a string attribute, unchanged during `'a`.
#[inline]
unsafe fn string<'a>(value: *mut c_void) -> Option<&'a [u8]> {
    // SAFETY: such a value is an `XLA_FFI_ByteSpan`.
    unsafe {
        let span = value.cast::<sys::ByteSpan>().as_ref()?;
        array(span.ptr, span.len as i64).ok()
    }
}

#[cold]
pub(super) fn changed() -> Error {
    Error::internal("the program's attributes are not those that INSTANTIATE saw")
}

/// A slice from C: a null pointer with a size of 0 is fine, any other null is not.
///
/// # Safety
/// `data` is null or points to `size` values, unchanged during `'a`.
#[inline]
pub(super) unsafe fn array<'a, T>(data: *const T, size: i64) -> Result<&'a [T]> {
    if size == 0 {
        return Ok(&[]);
    }
    // The bound keeps a slice of any type here below `isize::MAX` bytes.
    if data.is_null() || !data.is_aligned() || !(0..1 << 48).contains(&size) {
        return Err(damaged(size));
    }
    // SAFETY: the caller's promise; not null, aligned, and of a sane size.
    Ok(unsafe { slice::from_raw_parts(data, size as usize) })
}

#[cold]
fn damaged(size: i64) -> Error {
    Error::invalid_argument(format!(
        "the call frame is damaged: a list of {size} entries"
    ))
}
