//! What the parameters of a checked call are made of.

use super::sys;
use crate::plan::MAX_PARAMS;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Where the data of an array begins, and its own dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct View {
    pub(super) data: *mut u8,
    pub(super) dims: *const i64,
}

impl View {
    /// The whole of a buffer.
    #[inline(always)]
    pub(super) fn of(buffer: &sys::Buffer) -> View {
        View {
            data: buffer.data.cast(),
            dims: buffer.dims,
        }
    }
}

#[derive(Clone, Copy)]
union Value {
    view: View,
    /// A number among the static attributes, as it travelled.
    word: u64,
}

/// Values of parameters, each at its position: those of arrays and of numbers, once they are
/// known. A call has them on its stack, where bodies read them without asking what kind of call
/// it is.
pub(super) struct Values([Cell<MaybeUninit<Value>>; MAX_PARAMS]);

impl Values {
    #[inline(always)]
    pub(super) fn new() -> Values {
        Values([const { Cell::new(MaybeUninit::uninit()) }; MAX_PARAMS])
    }

    /// # Safety
    /// The position is less than [`MAX_PARAMS`].
    #[inline(always)]
    unsafe fn set(&self, param: u8, value: Value) {
        debug_assert!(usize::from(param) < MAX_PARAMS);
        // SAFETY: the caller's promise.
        let cell = unsafe { self.0.get_unchecked(usize::from(param)) };
        cell.set(MaybeUninit::new(value));
    }

    /// # Safety
    /// It is the position of a parameter.
    #[inline(always)]
    pub(super) unsafe fn set_view(&self, param: u8, view: View) {
        // SAFETY: callables have at most that many parameters.
        unsafe { self.set(param, Value { view }) };
    }

    /// # Safety
    /// It is the position of a parameter.
    #[inline(always)]
    pub(super) unsafe fn set_word(&self, param: u8, word: u64) {
        // SAFETY: callables have at most that many parameters.
        unsafe { self.set(param, Value { word }) };
    }

    /// # Safety
    /// The view of the parameter at this position was set.
    #[inline]
    pub(super) unsafe fn view(&self, param: usize) -> View {
        // SAFETY: the caller's promise.
        unsafe { self.0.get_unchecked(param).get().assume_init().view }
    }

    /// # Safety
    /// The word of the parameter at this position was set.
    #[inline]
    pub(super) unsafe fn word(&self, param: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.0.get_unchecked(param).get().assume_init().word }
    }
}
