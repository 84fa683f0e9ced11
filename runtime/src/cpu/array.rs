//! Arrays in host memory.

use crate::element::Element;
use std::fmt;
use std::ops::{
    Deref, DerefMut, Index, IndexMut, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo,
    RangeToInclusive,
};

/// An input: a dense row-major array of `N` dimensions in memory that JAX owns.
///
/// It derefs to the slice of its elements in row-major order, so that slice methods and
/// `x[i]` work; `x[[i, j]]` takes one index for each dimension. `N` may be 0: such an
/// array holds one element, and is the way to pass a scalar that changes at run time.
///
/// Packed elements stand for trailing dimensions in JAX: `Array<[f32; 3], 1>` with shape
/// `[n]` is a `float32` array of shape `(n, 3)`.
pub struct Array<'a, T: Element, const N: usize> {
    data: &'a [T],
    shape: [usize; N],
}

/// An output, or an in-out if it is named in `in_out`: like [`Array`], and writable.
///
/// What an output holds when the body begins is unspecified (in-outs hold their input),
/// so write all of it.
pub struct ArrayMut<'a, T: Element, const N: usize> {
    data: &'a mut [T],
    shape: [usize; N],
}

/// A workspace of the body, of the size that `#[dims(...)]` says: like [`ArrayMut`], and of
/// no concern to JAX.
///
/// XLA plans its memory with the program's, so that it costs no allocation. It holds arbitrary
/// values when the body begins; in a batch, also what the element before has left.
///
/// ```
/// use jax_callable::prelude::*;
///
/// /// y[i] <- the median of row i of x.
/// #[jax_callable]
/// fn row_medians(
///     #[dims(n, m)] x: cpu::Array<f32, 2>,
///     #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
///     #[dims(m)] mut sorted: cpu::Scratch<f32, 1>,
/// ) {
///     for (y, row) in y.iter_mut().zip(x.chunks_exact(sorted.len())) {
///         sorted.copy_from_slice(row);
///         sorted.sort_by(f32::total_cmp);
///         *y = sorted[sorted.len() / 2];
///     }
/// }
///
/// # fn main() -> Result<()> {
/// use jax_callable::testing::Target;
///
/// let call = Target::find("row_medians")?.call();
/// let outcome = call.input("x", [2, 3], &[3.0_f32, 1.0, 2.0, 4.0, 6.0, 5.0]).run()?;
/// assert_eq!(outcome.get::<f32>("y"), [2.0, 5.0]);
/// # Ok(())
/// # }
/// ```
pub struct Scratch<'a, T: Element, const N: usize> {
    data: &'a mut [T],
    shape: [usize; N],
}

impl<'a, T: Element, const N: usize> Array<'a, T, N> {
    pub(crate) fn new(data: &'a [T], shape: [usize; N]) -> Self {
        debug_assert_eq!(data.len(), shape.iter().product::<usize>());
        Array { data, shape }
    }

    /// The elements in row-major order, for as long as the call lasts.
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }

    /// A view as an `ndarray` array.
    #[cfg(feature = "ndarray")]
    pub fn view(&self) -> ndarray::ArrayView<'a, T, ndarray::Dim<[usize; N]>>
    where
        ndarray::Dim<[usize; N]>: ndarray::Dimension,
        [usize; N]: ndarray::IntoDimension<Dim = ndarray::Dim<[usize; N]>>,
    {
        ndarray::ArrayView::from_shape(self.shape, self.data)
            .expect("the shape has as many elements as the slice")
    }
}

/// The position of an element in row-major order.
#[inline]
#[track_caller]
fn offset<const N: usize>(shape: [usize; N], index: [usize; N]) -> usize {
    let mut offset = 0;
    for axis in 0..N {
        assert!(
            index[axis] < shape[axis],
            "index {index:?} is out of bounds for the shape {shape:?}"
        );
        offset = offset * shape[axis] + index[axis];
    }
    offset
}

macro_rules! common {
    ($array:ident) => {
        impl<T: Element, const N: usize> $array<'_, T, N> {
            /// The shape, without batch axes and packed dimensions.
            pub fn shape(&self) -> [usize; N] {
                self.shape
            }

            /// The size of one dimension.
            ///
            /// # Panics
            /// If `axis` is not below `N`.
            #[track_caller]
            pub fn dim(&self, axis: usize) -> usize {
                self.shape[axis]
            }
        }

        impl<T: Element, const N: usize> Deref for $array<'_, T, N> {
            type Target = [T];
            fn deref(&self) -> &[T] {
                self.data
            }
        }

        impl<T: Element, const N: usize> Index<[usize; N]> for $array<'_, T, N> {
            type Output = T;
            #[inline]
            #[track_caller]
            fn index(&self, index: [usize; N]) -> &T {
                &self.data[offset(self.shape, index)]
            }
        }

        impl<T: Element + fmt::Debug, const N: usize> fmt::Debug for $array<'_, T, N> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($array))
                    .field("shape", &self.shape)
                    .field("data", &self.data)
                    .finish()
            }
        }
    };
}

common!(Array);
common!(ArrayMut);
common!(Scratch);

macro_rules! writable {
    ($array:ident) => {
        impl<'a, T: Element, const N: usize> $array<'a, T, N> {
            pub(crate) fn new(data: &'a mut [T], shape: [usize; N]) -> Self {
                debug_assert_eq!(data.len(), shape.iter().product::<usize>());
                $array { data, shape }
            }

            /// The elements in row-major order, to be written.
            pub fn as_mut_slice(&mut self) -> &mut [T] {
                self.data
            }

            /// A writable view as an `ndarray` array.
            #[cfg(feature = "ndarray")]
            pub fn view_mut(&mut self) -> ndarray::ArrayViewMut<'_, T, ndarray::Dim<[usize; N]>>
            where
                ndarray::Dim<[usize; N]>: ndarray::Dimension,
                [usize; N]: ndarray::IntoDimension<Dim = ndarray::Dim<[usize; N]>>,
            {
                ndarray::ArrayViewMut::from_shape(self.shape, self.data)
                    .expect("the shape has as many elements as the slice")
            }
        }

        impl<T: Element, const N: usize> DerefMut for $array<'_, T, N> {
            fn deref_mut(&mut self) -> &mut [T] {
                self.data
            }
        }

        impl<T: Element, const N: usize> IndexMut<[usize; N]> for $array<'_, T, N> {
            #[inline]
            #[track_caller]
            fn index_mut(&mut self, index: [usize; N]) -> &mut T {
                &mut self.data[offset(self.shape, index)]
            }
        }
    };
}

writable!(ArrayMut);
writable!(Scratch);

// An `Index` of its own hides the slice's behind `Deref`: hand on what slices take.
macro_rules! slice_index {
    ($array:ident: $($index:ty => $output:ty,)*) => {$(
        impl<T: Element, const N: usize> Index<$index> for $array<'_, T, N> {
            type Output = $output;
            #[inline]
            #[track_caller]
            fn index(&self, index: $index) -> &$output {
                &self.data[index]
            }
        }
    )*};
    ($array:ident mut: $($index:ty => $output:ty,)*) => {
        slice_index! { $array: $($index => $output,)* }
        $(impl<T: Element, const N: usize> IndexMut<$index> for $array<'_, T, N> {
            #[inline]
            #[track_caller]
            fn index_mut(&mut self, index: $index) -> &mut $output {
                &mut self.data[index]
            }
        })*
    };
}

macro_rules! slice_indices {
    ($($array:ident $($mutable:ident)?,)*) => {$(
        slice_index! { $array $($mutable)?:
            usize => T,
            Range<usize> => [T],
            RangeInclusive<usize> => [T],
            RangeFrom<usize> => [T],
            RangeTo<usize> => [T],
            RangeToInclusive<usize> => [T],
            RangeFull => [T],
        }
    )*};
}

slice_indices! { Array, ArrayMut mut, Scratch mut, }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices() {
        let mut data = [1, 2, 3, 4, 5, 6];
        let mut a = ArrayMut::new(&mut data, [2, 3]);
        a[[1, 2]] = 60;
        a[0] += 9;
        a[1..3].fill(7);
        assert_eq!((a[[0, 0]], a[5], &a[..2]), (10, 60, &[10, 7][..]));
        assert_eq!(a.shape(), [2, 3]);
        let scalar = Array::new(&data[3..4], []);
        assert_eq!((scalar[[]], scalar[0], scalar.len()), (4, 4, 1));
    }

    #[test]
    #[should_panic(expected = "index [0, 3] is out of bounds for the shape [2, 3]")]
    fn each_index_is_checked() {
        let data = [0_u8; 6];
        let _ = Array::new(&data, [2, 3])[[0, 3]];
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn ndarray_views() {
        let mut data = [1.0, 2.0, 3.0, 4.0];
        let sum = Array::new(&data, [2, 2]).view().sum_axis(ndarray::Axis(0));
        assert_eq!(sum.to_vec(), [4.0, 6.0]);
        ArrayMut::new(&mut data, [2, 2]).view_mut()[[1, 0]] = 9.0;
        assert_eq!(data, [1.0, 2.0, 9.0, 4.0]);
        let data = [5.0];
        assert_eq!(Array::new(&data, []).view().sum(), 5.0);
    }
}
