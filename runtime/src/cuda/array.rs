//! Arrays in device memory.

use crate::element::Element;
use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, LaunchArgs, PushKernelArg, SyncOnDrop,
};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An input: a read-only, dense, row-major array of `N` dimensions in device memory.
///
/// It is an argument for kernels, for `cudarc`'s copies and for its library wrappers, by
/// `&x`. `T` may be packed, as in [`cpu::Array`](crate::cpu::Array).
#[derive(Clone, Copy)]
pub struct Array<'a, T: Element, const N: usize> {
    view: View<'a, N>,
    elements: PhantomData<&'a [T]>,
}

/// An output or in-out: a dense, row-major array of `N` dimensions in device memory.
///
/// It is an argument for kernels, for `cudarc`'s copies and for its library wrappers, by
/// `&mut y` where it is written. An output holds arbitrary bytes before that.
pub struct ArrayMut<'a, T: Element, const N: usize> {
    view: View<'a, N>,
    elements: PhantomData<&'a mut [T]>,
}

/// A workspace of the body in device memory, of the size that `#[dims(...)]` says: an argument
/// for kernels and libraries like [`ArrayMut`], and of no concern to JAX.
///
/// XLA plans its memory with the program's: it costs no allocation, and is there under its
/// address in graphs that XLA or this crate launches again. It holds arbitrary values when the
/// body begins; in a batch, also what the element before has left.
pub struct Scratch<'a, T: Element, const N: usize> {
    view: View<'a, N>,
    elements: PhantomData<&'a mut [T]>,
}

#[derive(Clone, Copy)]
struct View<'a, const N: usize> {
    /// 0 or anything else if there are no elements.
    pointer: u64,
    shape: [usize; N],
    stream: &'a Arc<CudaStream>,
}

macro_rules! array {
    ($array:ident) => {
        impl<'a, T: Element, const N: usize> $array<'a, T, N> {
            /// The stream is that of the call, and the pointer that of an array of this shape
            /// in device memory, which nothing else uses in a way that this type excludes.
            pub(crate) fn new(
                pointer: u64,
                shape: [usize; N],
                stream: &'a Arc<CudaStream>,
            ) -> Self {
                let view = View {
                    pointer,
                    shape,
                    stream,
                };
                $array {
                    view,
                    elements: PhantomData,
                }
            }

            /// The number of elements along each dimension.
            pub fn shape(&self) -> [usize; N] {
                self.view.shape
            }

            /// The number of elements along one dimension.
            ///
            /// # Panics
            /// If `axis` is not less than `N`.
            #[track_caller]
            pub fn dim(&self, axis: usize) -> usize {
                self.view.shape[axis]
            }

            /// The number of elements `T`.
            pub fn len(&self) -> usize {
                self.view.shape.iter().product()
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The address of the first element on the device, as the driver counts them. It
            /// is valid for work on the call's stream. Without elements it may be 0.
            pub fn device_ptr(&self) -> u64 {
                self.view.pointer
            }
        }

        impl<T: Element, const N: usize> DeviceSlice<T> for $array<'_, T, N> {
            fn len(&self) -> usize {
                $array::len(self)
            }

            fn stream(&self) -> &Arc<CudaStream> {
                self.view.stream
            }
        }

        impl<T: Element, const N: usize> DevicePtr<T> for $array<'_, T, N> {
            // No events: XLA orders the work of its stream.
            fn device_ptr<'s>(&'s self, _: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
                (self.view.pointer, SyncOnDrop::Record(None))
            }
        }

        // SAFETY: the argument is the address of the array, as kernels take pointers, read
        // from a place that is borrowed until the launch.
        unsafe impl<'l, 'b: 'l, T: Element, const N: usize> PushKernelArg<&'b $array<'_, T, N>>
            for LaunchArgs<'l>
        {
            #[inline(always)]
            fn arg(&mut self, array: &'b $array<'_, T, N>) -> &mut Self {
                PushKernelArg::<&u64>::arg(self, &array.view.pointer)
            }
        }

        impl<T: Element, const N: usize> fmt::Debug for $array<'_, T, N> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($array))
                    .field("device_ptr", &format_args!("{:#x}", self.view.pointer))
                    .field("shape", &self.view.shape)
                    .finish()
            }
        }
    };
}

array!(Array);
array!(ArrayMut);
array!(Scratch);

macro_rules! writable {
    ($array:ident) => {
        impl<T: Element, const N: usize> DevicePtrMut<T> for $array<'_, T, N> {
            fn device_ptr_mut<'s>(&'s mut self, _: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
                (self.view.pointer, SyncOnDrop::Record(None))
            }
        }

        // SAFETY: as for `&$array`.
        unsafe impl<'l, 'b: 'l, T: Element, const N: usize> PushKernelArg<&'b mut $array<'_, T, N>>
            for LaunchArgs<'l>
        {
            #[inline(always)]
            fn arg(&mut self, array: &'b mut $array<'_, T, N>) -> &mut Self {
                PushKernelArg::<&u64>::arg(self, &array.view.pointer)
            }
        }
    };
}

writable!(ArrayMut);
writable!(Scratch);
