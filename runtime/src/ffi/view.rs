//! Parameters from checked calls.

use super::attrs::changed;
use super::frame::Call;
use super::sys;
use super::values::{Values, View};
use crate::cpu::{Array, ArrayMut, Context, Scratch};
use crate::element::Element;
use crate::error::Result;
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
    /// Sets the views of the arrays, for one batch element.
    ///
    /// The call was checked.
    pub(super) fn read_views(&self, values: &Values) {
        let plan = self.plan();
        for (operand, &param) in plan.operand_params().iter().enumerate() {
            // SAFETY: the call was checked and has this operand, which is the parameter's.
            unsafe {
                let view = self.view_of(self.operand_buffer(operand), self.operand_rank(operand));
                values.set_view(param, view);
            }
        }
        // What an in-out sees is its result.
        for (result, &param) in plan.result_params().iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let view = self.view_of(self.result_buffer(result), self.result_rank(result));
                values.set_view(param, view);
            }
        }
    }

    /// # Safety
    /// The buffer is one of the call, which was checked, with that many batch axes.
    #[inline]
    unsafe fn view_of(&self, buffer: &'a sys::Buffer, batch_rank: usize) -> View {
        if batch_rank == 0 {
            return View::of(buffer);
        }
        View {
            data: self.data(buffer, batch_rank),
            dims: buffer.dims()[batch_rank..].as_ptr(),
        }
    }

    /// Sets the numbers among the static attributes.
    ///
    /// # Errors
    /// If the host changed the attributes after INSTANTIATE.
    pub(super) fn read_numbers(&self, values: &Values) -> Result<()> {
        for &param in self.plan().numbers() {
            let slot = self.slot(usize::from(param));
            let number = self.number_at(slot).ok_or_else(changed)?;
            // SAFETY: it is the parameter's position.
            unsafe { values.set_word(param, number as u64) };
        }
        Ok(())
    }

    /// The view of an array.
    ///
    /// # Safety
    /// The body runs, and the parameter at this position is one.
    #[inline]
    pub(super) unsafe fn view(&self, index: usize) -> View {
        // SAFETY: the caller's promise: the values live during that, and the views are set.
        unsafe { (*self.values).view(index) }
    }

    /// A static attribute that is a number, as it travelled.
    ///
    /// # Safety
    /// The body runs, or the state is built, and the parameter at this position is one.
    #[inline]
    unsafe fn word(&self, index: usize) -> u64 {
        // SAFETY: the caller's promise: the values live during that, and the numbers are set.
        unsafe { (*self.values).word(index) }
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for Array<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cpu, Kind::Array, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: a call is checked when it comes here, and the parameter there is an input of this type.
        let (view, (shape, len)) = unsafe {
            let view = call.view(index);
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
            let view = call.view(index);
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
            let view = call.view(index);
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
                // SAFETY: a call is given to what takes each parameter as what it is.
                <$ty>::from_words([unsafe { call.word(index) }, 0])
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
