//! Device memory: host memory that belongs to a device.

use super::{Result, misuse};
use cudarc::driver::sys::CUresult;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::ptr::without_provenance_mut;

const ALIGNMENT: usize = 256;
/// What new memory holds, and freed memory.
const FRESH: u8 = 0xA5;
const FREED: u8 = 0xDE;
/// So much freed memory is kept from being given again.
const QUARANTINE: usize = 4096;

/// What may be done with an allocation now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The stream that allocates it is not there yet, or its graph does not run.
    Reserved,
    Live,
}

struct Block {
    device: usize,
    bytes: usize,
    state: State,
    pointer: *mut u8,
}

#[derive(Default)]
pub(crate) struct Memory {
    blocks: BTreeMap<u64, Block>,
    freed: VecDeque<(u64, Block)>,
}

impl Memory {
    /// The address of new memory.
    pub(crate) fn allocate(&mut self, device: usize, bytes: usize, state: State) -> Result<u64> {
        if bytes == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE.into());
        }
        let layout = layout(bytes);
        // SAFETY: the size is not 0.
        let pointer = unsafe { alloc(layout) };
        if pointer.is_null() {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY.into());
        }
        // SAFETY: it has this size.
        unsafe { pointer.write_bytes(FRESH, bytes) };
        let address = pointer.expose_provenance() as u64;
        let block = Block {
            device,
            bytes,
            state,
            pointer,
        };
        self.blocks.insert(address, block);
        Ok(address)
    }

    pub(crate) fn set_state(&mut self, address: u64, state: State) {
        if let Some(block) = self.blocks.get_mut(&address) {
            block.state = state;
        }
    }

    /// Frees what begins at an address.
    pub(crate) fn free(&mut self, address: u64) -> Result {
        let Some(block) = self.blocks.remove(&address) else {
            let what = format!("{address:#x} is freed, which is no allocation");
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        };
        // SAFETY: the block has this size.
        unsafe { block.pointer.write_bytes(FREED, block.bytes) };
        self.freed.push_back((address, block));
        if self.freed.len() > QUARANTINE
            && let Some((_, block)) = self.freed.pop_front()
        {
            // SAFETY: it was allocated so, and is in no list any more.
            unsafe { dealloc(block.pointer, layout(block.bytes)) };
        }
        Ok(())
    }

    /// Whether something begins at an address.
    pub(crate) fn is_allocation(&self, address: u64) -> bool {
        self.blocks.contains_key(&address)
    }

    /// The device of an address.
    pub(crate) fn device_of(&self, address: u64) -> Option<usize> {
        self.find(address).map(|(_, block)| block.device)
    }

    /// Whether the driver takes a range for device memory when it is told to copy.
    pub(crate) fn is_known(&self, address: u64, bytes: usize) -> Result {
        if let Some((start, block)) = self.find(address)
            && address - start + bytes as u64 <= block.bytes as u64
        {
            return Ok(());
        }
        if self.was_freed(address) {
            let what = format!("a copy of freed memory at {address:#x}");
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        }
        Err(CUresult::CUDA_ERROR_INVALID_VALUE.into())
    }

    /// The memory at an address, for work that runs on a device; or why it is none.
    pub(crate) fn at(
        &self,
        device: usize,
        address: u64,
        bytes: usize,
    ) -> std::result::Result<*mut u8, String> {
        let range = format!("{bytes} bytes at {address:#x} on device {device}");
        let Some((start, block)) = self.find(address) else {
            return Err(match self.was_freed(address) {
                true => format!("{range} were freed"),
                false => format!("{range} are no device memory"),
            });
        };
        let offset = (address - start) as usize;
        if block.device != device {
            return Err(format!("{range} are of device {}", block.device));
        }
        if offset + bytes > block.bytes {
            let size = block.bytes;
            return Err(format!("{range} are {offset} into an allocation of {size}"));
        }
        if block.state == State::Reserved {
            return Err(format!(
                "{range} are used outside of their life on a stream"
            ));
        }
        // Not by the block's pointer: its provenance is exposed, and tests write through it too.
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    pub(crate) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn find(&self, address: u64) -> Option<(u64, &Block)> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes as u64).then_some((start, block))
    }

    fn was_freed(&self, address: u64) -> bool {
        let mut freed = self.freed.iter();
        freed.any(|(start, block)| (*start..start + block.bytes as u64).contains(&address))
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("a size that the host has")
}

/// A handle or an address as the interface has it.
pub(crate) fn pointer<T>(handle: u64) -> *mut T {
    without_provenance_mut(handle as usize)
}
