//! Parameters on a GPU from checked calls.

use super::frame::Call;
use super::place::Place;
use super::view::{array_type, other_type};
use crate::cuda::{Array, ArrayMut, Context, PerDevice, Scratch};
use crate::element::Element;
use crate::param::FfiArg;
use crate::signature::{Kind, ParamType, Platform};
use crate::state::Holder;

impl<'a> Call<'a> {
    fn cuda(&self) -> &'a Context {
        match self.place {
            Place::Cuda(context) => context,
            Place::Host(_) => unreachable!("a callable with parameters on a GPU runs there"),
        }
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for Array<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cuda, Kind::Array, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: a call is checked when it comes here, and the parameter there is of this type.
        let (view, (shape, _)) = unsafe {
            let view = call.view(index);
            (view, view.shape())
        };
        Array::new(view.data.addr() as u64, shape, call.cuda().stream())
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for ArrayMut<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cuda, Kind::ArrayMut, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: a call is checked when it comes here, and the parameter there is of this type.
        let (view, (shape, _)) = unsafe {
            let view = call.view(index);
            (view, view.shape())
        };
        ArrayMut::new(view.data.addr() as u64, shape, call.cuda().stream())
    }
}

impl<'a, T: Element, const N: usize> FfiArg<'a> for Scratch<'a, T, N> {
    const TYPE: ParamType = array_type::<T>(Platform::Cuda, Kind::Scratch, N);
    type StateOr<Other: Holder> = Other;

    #[inline]
    fn take(call: &'a Call<'a>, index: usize) -> Self {
        // SAFETY: a call is checked when it comes here, and the parameter there is of this type.
        let (view, (shape, _)) = unsafe {
            let view = call.view(index);
            (view, view.shape())
        };
        Scratch::new(view.data.addr() as u64, shape, call.cuda().stream())
    }
}

impl<'a, S: Send + Sync + 'static> FfiArg<'a> for &'a PerDevice<S> {
    const TYPE: ParamType = other_type(Some(Platform::Cuda), Kind::PerDevice);
    type StateOr<Other: Holder> = PerDevice<S>;

    fn take(call: &'a Call<'a>, _: usize) -> Self {
        let states = call.site.and_then(|site| site.device_states.as_ref());
        let state = states.and_then(|states| states.get(call.cuda().device_ordinal()));
        let state = state.and_then(|state| state.downcast_ref());
        state.expect("INITIALIZE has built the state of this device")
    }
}

#[diagnostic::do_not_recommend]
impl<'a> FfiArg<'a> for &'a Context {
    const TYPE: ParamType = other_type(Some(Platform::Cuda), Kind::Context);
    type StateOr<Other: Holder> = Other;

    fn take(call: &'a Call<'a>, _: usize) -> Self {
        call.cuda()
    }
}
