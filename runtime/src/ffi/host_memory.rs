//! Memory of buffers, with a border on both sides that shows when something was written there.

use crate::element::Element;
use std::ptr;

/// Words of a border: 64 bytes.
const BORDER: usize = 4;
const BORDER_BYTE: u8 = 0xC9;
const BORDER_WORD: u128 = u128::from_ne_bytes([BORDER_BYTE; 16]);
/// Not a likely result.
const UNWRITTEN_BYTE: u8 = 0xA5;

/// Memory for a buffer, aligned as XLA's is at least.
#[derive(Clone)]
pub(crate) struct Memory {
    words: Vec<u128>,
    /// In bytes.
    size: usize,
}

impl Memory {
    /// Room for `size` bytes, filled with a byte that is not a likely result.
    pub(crate) fn unwritten(size: usize) -> Memory {
        let words = 2 * BORDER + size.div_ceil(size_of::<u128>());
        let mut memory = Memory {
            words: vec![BORDER_WORD; words],
            size,
        };
        // SAFETY: there is this much room.
        unsafe { memory.as_mut_ptr().write_bytes(UNWRITTEN_BYTE, size) };
        memory
    }

    pub(crate) fn of<T: Element>(values: &[T]) -> Memory {
        let mut memory = Memory::unwritten(size_of_val(values));
        // SAFETY: the room is large enough and its own.
        unsafe {
            ptr::copy_nonoverlapping(values.as_ptr(), memory.as_mut_ptr().cast(), values.len())
        };
        memory
    }

    /// The same bytes with room for more, or less of them.
    pub(crate) fn resized(&self, size: usize) -> Memory {
        let mut memory = Memory::unwritten(size);
        let kept = size.min(self.size);
        // SAFETY: both have that many bytes, each its own.
        unsafe { ptr::copy_nonoverlapping(self.as_ptr(), memory.as_mut_ptr(), kept) };
        memory
    }

    pub(crate) fn to_vec<T: Element>(&self, len: usize) -> Vec<T> {
        assert!(len * size_of::<T>() <= self.size);
        // SAFETY: there is room for `len` elements, aligned, and an `Element` may have any
        // bit pattern.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast::<T>(), len) }.to_vec()
    }

    /// In bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.to_vec(self.size)
    }

    /// Whether the bytes that both have are the same.
    pub(crate) fn begins_as(&self, other: &Memory) -> bool {
        let (a, b) = (self.bytes(), other.bytes());
        a.iter().zip(&b).all(|(a, b)| a == b)
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.bytes().iter().all(|&byte| byte == UNWRITTEN_BYTE)
    }

    /// Whether nothing was written around it.
    pub(crate) fn has_borders(&self) -> bool {
        let (first, rest) = self.words.split_at(BORDER);
        let (full, last) = rest.split_at(self.size / size_of::<u128>());
        let last = last.iter().flat_map(|word| word.to_ne_bytes());
        let used = self.size - size_of_val(full);
        first.iter().all(|&word| word == BORDER_WORD)
            && last.skip(used).all(|byte| byte == BORDER_BYTE)
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().wrapping_add(BORDER).cast()
    }

    fn as_ptr(&self) -> *const u8 {
        self.words.as_ptr().wrapping_add(BORDER).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_show_what_is_written_around_memory() {
        for size in [0, 1, 15, 16, 17, 64] {
            let mut memory = Memory::unwritten(size);
            assert!(memory.has_borders() && memory.is_unwritten());
            for offset in [-64, -1, size as isize, size as isize + 63] {
                let place = memory.as_mut_ptr().wrapping_offset(offset);
                // SAFETY: within the borders.
                let before = unsafe { place.replace(0) };
                assert!(!memory.has_borders(), "{size} {offset}");
                // SAFETY: as above.
                unsafe { place.write(before) };
            }
            assert!(memory.has_borders());
        }
    }

    #[test]
    fn what_is_resized_keeps_its_beginning() {
        let memory = Memory::of(&[1_u16, 2, 3]);
        assert_eq!(memory.resized(4).to_vec::<u16>(2), [1, 2]);
        assert_eq!(memory.resized(8).to_vec::<u16>(4), [1, 2, 3, 0xA5A5]);
    }
}
