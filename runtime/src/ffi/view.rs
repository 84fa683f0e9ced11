//! Parameters from checked calls.

use super::attrs::changed;
use super::frame::Call;
use super::sys;
use crate::cpu::{Array, ArrayMut, Context, Scratch};
use crate::element::Element;
use crate::param::{FfiArg, StaticNumber};
use crate::signature::{BufferType, Kind, Length, ParamType, Platform, StaticType};
use crate::state::{Holder, State};
use crate::statics::Kept;
use std::slice;

pub(super) const fn array_type<T: Element>(
    platform: Platform,
    kind: Kind,
    rank: usize,
) -> ParamType {
    ParamType {
        kind,
        platform: Some(platform),
        dtype: Some(T::DTYPE),
        rank,
        packed: T::PACKED,
        buffer: BufferType::new(T::DTYPE, rank, T::PACKED, align_of::<T>() as u16 - 1),
        value: None,
    }
}

/// For what is neither an array nor a static attribute.
pub(super) const fn other_type(platform: Option<Platform>, kind: Kind) -> ParamType {
    ParamType {
        kind,
        platform,
        dtype: None,
        rank: 0,
        packed: &[],
        buffer: BufferType::NONE,
        value: None,
    }
}

const fn static_type(value: StaticType) -> ParamType {
    ParamType {
        kind: Kind::Static,
        platform: None,
        dtype: None,
        rank: 0,
        packed: &[],
        buffer: BufferType::NONE,
        value: Some(value),
    }
}

/// Where the data of an array begins, and its own dimensions.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) data: *mut u8,
    dims: *const i64,
}

impl View {
    /// The shape, and the number of elements.
    ///
    /// # Safety
    /// The view is that of an array of `N` dimensions.
    #[inline]
    pub(super) unsafe fn shape<const N: usize>(self) -> ([usize; N], usize) {
        // SAFETY: the caller's promise.
        let shape = std::array::from_fn(|axis| unsafe { *self.dims.add(axis) as usize });
        (shape, shape.iter().product())
    }

    /// The elements, to be written.
    ///
    /// # Safety
    /// There are `len` of them, aligned, in memory that nothing else uses during `'a`; without
    /// any, the address may be anything.
    #[inline]
    unsafe fn elements_mut<'a, T: Element>(self, len: usize) -> &'a mut [T] {
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the caller's promise. XLA's memory is not uninitialised in Rust's sense: it
        // comes from outside; and every bit pattern is a value of an `Element`.
        unsafe { slice::from_raw_parts_mut(self.data.cast::<T>(), len) }
    }
}

impl<'a> Call<'a> {
    /// The view of an input. Out of line, as the other ones are: they are called for each
    /// parameter of each callable.
    ///
    /// # Safety
    /// The call was checked, and the parameter at this position is an input.
    pub(super) unsafe fn input_view(&self, index: usize) -> View {
        // SAFETY: the caller's promise.
        unsafe {
            let operand = usize::from(self.slot(index));
            self.view(self.operand_buffer(operand), self.operand_rank(operand))
        }
    }

    /// The view of an output, an in-out or scratch.
    ///
    /// # Safety
    /// The call was checked, and the parameter at this position is one of these.
    pub(super) unsafe fn result_view(&self, index: usize) -> View {
        // SAFETY: the caller's promise.
        unsafe {
            let result = usize::from(self.slot(index));
            self.view(self.result_buffer(result), self.result_rank(result))
        }
    }

    /// # Safety
    /// The buffer is one of the call, which was checked, with that many batch axes.
    #[inline(always)]
    unsafe fn view(&self, buffer: &'a sys::Buffer, batch_rank: usize) -> View {
        if batch_rank == 0 {
            let (data, dims) = (buffer.data.cast(), buffer.dims);
            return View { data, dims };
        }
        View {
            data: self.data(buffer, batch_rank),
            dims: buffer.dims()[batch_rank..].as_ptr(),
        }
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for Array<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cpu, Kind::Array, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: a call is checked when it comes here, and the parameter there is an input of this type.
        let (view, (shape, len)) = unsafe {
            let view = call.input_view(index);
            (view, view.shape())
        };
        let data = if len == 0 {
            &[]
        } else {
            // SAFETY: the buffer was checked to hold this many elements of this type,
            // aligned and not null; every bit pattern is a value of an `Element`; and
            // no mutable view of the call overlaps it.
            unsafe { slice::from_raw_parts(view.data.cast::<T>(), len) }
        };
        Array::new(data, shape)
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for ArrayMut<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cpu, Kind::ArrayMut, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: as for `Array`, and each result is taken once, so that this is the
        // only view of memory that nothing else of the call overlaps.
        unsafe {
            let view = call.result_view(index);
            let (shape, len) = view.shape();
            ArrayMut::new(view.elements_mut(len), shape)
        }
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for Scratch<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cpu, Kind::Scratch, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: as for `ArrayMut`; in a batch the view of the element before is gone.
        unsafe {
            let view = call.result_view(index);
            let (shape, len) = view.shape();
            Scratch::new(view.elements_mut(len), shape)
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'a> FfiArg<'a> for &'a Context {
    const TYPE: ParamType = other_type(Some(Platform::Cpu), Kind::Context);
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, _: usize) -> Self {
        &call.context
    }
}

impl<'a, S: Send + Sync + 'static> FfiArg<'a> for &'a State<S> {
    const TYPE: ParamType = other_type(None, Kind::State);
    type StateOr<Other: Holder> = State<S>;

    fn take(call: &'a Call<'a>, _: usize) -> Self {
        let state = call.site.and_then(|site| site.state.as_deref());
        let state = state.and_then(|state| state.downcast_ref());
        state.expect("INSTANTIATE has built the state")
    }
}

#[diagnostic::do_not_recommend]
impl<'a> FfiArg<'a> for &'a str {
    const TYPE: ParamType = static_type(StaticType::Str);
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, index: usize) -> Self {
        match call.kept(index) {
            Kept::Str(text) => text,
            other => unreachable!("a str was decoded to {other:?}"),
        }
    }
}

impl<'a, T: StaticNumber> FfiArg<'a> for &'a [T] {
    const TYPE: ParamType = static_type(StaticType::Number(T::DTYPE, Length::Slice));
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, index: usize) -> Self {
        match call.kept(index) {
            Kept::Packed(packed) => {
                // SAFETY: decoding packed `len` values of this type's size into memory
                // aligned to 8 bytes, which is enough for any of them, and checked that
                // a `bool` is 0 or 1; for the other types every bit pattern is a value.
                unsafe { slice::from_raw_parts(packed.words.as_ptr().cast::<T>(), packed.len) }
            }
            other => unreachable!("a slice was decoded to {other:?}"),
        }
    }
}

impl<'a, T: StaticNumber, const K: usize> FfiArg<'a> for [T; K] {
    const TYPE: ParamType = static_type(StaticType::Number(T::DTYPE, Length::Fixed(K)));
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // The same static attribute, whose length was checked when decoded.
        let values = <&[T] as FfiArg>::take(call, index);
        std::array::from_fn(|i| values[i])
    }
}

impl<'a> Call<'a> {
    /// A static attribute that the call site keeps.
    fn kept(&self, index: usize) -> &'a Kept {
        let site = self
            .site
            .expect("fetched for callables that keep something");
        &site.kept[usize::from(self.slot(index))]
    }

    /// A static attribute that is a number, as it travelled. Out of line, as the views are.
    ///
    /// # Panics
    /// If the host changed the attributes after INSTANTIATE, which is then the call's error.
    fn word(&self, index: usize) -> u64 {
        match self.number_at(self.slot(index)) {
            Some(value) => value as u64,
            None => refuse(),
        }
    }
}

#[cold]
#[inline(never)]
fn refuse() -> ! {
    panic!("{}", changed())
}

macro_rules! numbers {
    ($($ty:ty,)*) => {$(
        // The trait's notes list them all.
        #[diagnostic::do_not_recommend]
        impl<'a> FfiArg<'a> for $ty {
            const TYPE: ParamType =
                static_type(StaticType::Number(<$ty as StaticNumber>::DTYPE, Length::One));
                type StateOr<Other: Holder> = Other;

            #[inline]
            fn take(call: &'a Call<'a>, index: usize) -> Self {
                <$ty>::from_words([call.word(index), 0])
            }
        }
        const _: () = assert!(align_of::<$ty>() <= align_of::<u64>());
    )*};
}

numbers! { bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, }
#[cfg(feature = "half")]
numbers! { half::f16, half::bf16, }
#[cfg(feature = "num-complex")]
numbers! { num_complex::Complex<f32>, }

#[cfg(feature = "num-complex")]
#[diagnostic::do_not_recommend]
impl<'a> FfiArg<'a> for num_complex::Complex<f64> {
    const TYPE: ParamType = static_type(StaticType::Number(
        <Self as StaticNumber>::DTYPE,
        Length::One,
    ));
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, index: usize) -> Self {
        match call.kept(index) {
            Kept::Pair(words) => Self::from_words(*words),
            other => unreachable!("a complex128 was decoded to {other:?}"),
        }
    }
}
