//! A call with its buffers at other addresses: staging buffers, or made-up ones in a capture.

use super::sys;
use std::ffi::c_void;
use std::marker::PhantomData;

/// A call frame that is another one but for the addresses of its buffers.
pub(super) struct Relocated<'a> {
    frame: sys::CallFrame,
    // The frame points to these.
    _buffers: Vec<sys::Buffer>,
    _lists: [Vec<*mut c_void>; 2],
    original: PhantomData<&'a sys::CallFrame>,
}

impl<'a> Relocated<'a> {
    /// The frame with its operands, then its results, at these addresses.
    ///
    /// # Safety
    /// The frame is one of a running EXECUTE call whose buffers were checked, with as many
    /// operands and results as there are addresses.
    pub(super) unsafe fn new(frame: &'a sys::CallFrame, addresses: &[u64]) -> Relocated<'a> {
        let (args, rets) = (frame.args.size as usize, frame.rets.size as usize);
        assert_eq!(addresses.len(), args + rets);
        let originals = (0..args + rets).map(|i| {
            // SAFETY: the lists have this many entries, all of them buffers.
            unsafe {
                let buffer = match i.checked_sub(args) {
                    None => *frame.args.buffers.add(i),
                    Some(i) => *frame.rets.buffers.add(i),
                };
                &*buffer.cast::<sys::Buffer>()
            }
        });
        let mut buffers: Vec<_> = originals
            .zip(addresses)
            .map(|(buffer, &address)| sys::Buffer {
                data: std::ptr::without_provenance_mut(address as usize),
                ..*buffer
            })
            .collect();
        let mut pointers = buffers.iter_mut().map(|buffer| (&raw mut *buffer).cast());
        let mut lists = [
            pointers.by_ref().take(args).collect::<Vec<_>>(),
            pointers.collect(),
        ];
        let list = |list: &sys::Buffers, pointers: &mut Vec<_>| sys::Buffers {
            buffers: match list.buffers.is_null() {
                true => list.buffers,
                false => pointers.as_mut_ptr(),
            },
            ..*list
        };
        let frame = sys::CallFrame {
            args: list(&frame.args, &mut lists[0]),
            rets: list(&frame.rets, &mut lists[1]),
            ..*frame
        };
        Relocated {
            frame,
            _buffers: buffers,
            _lists: lists,
            original: PhantomData,
        }
    }

    pub(super) fn frame(&self) -> &sys::CallFrame {
        &self.frame
    }
}
