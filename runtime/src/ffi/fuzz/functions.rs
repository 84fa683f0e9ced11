//! The functions that random frames call. What each writes depends on every byte that it may read.

use super::super::{entry, sys};
use crate::element::Element;
use crate::param::Definition;
use crate::prelude::*;
use crate::signature::Callable;

/// A function, as the test calls it.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) callable: &'static Callable,
    pub(super) instantiate: sys::Handler,
    pub(super) execute: sys::Handler,
}

const fn function<D: Definition>() -> Function {
    Function {
        callable: D::CALLABLE,
        instantiate: entry::handler::<D>,
        execute: entry::handler::<D>,
    }
}

pub(super) const FUNCTIONS: [Function; 6] = [
    function::<fuzz_plain::Def>(),
    function::<fuzz_dims::Def>(),
    function::<fuzz_packed::Def>(),
    function::<fuzz_scratch::Def>(),
    function::<fuzz_kept::Def>(),
    function::<fuzz_source::Def>(),
];

/// The body of them all: fails now and then, before it writes anything.
pub(super) fn body(statics: &[&[u8]], operands: &[&[u8]], outs: &mut [&mut [u8]]) -> Result<()> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        hash
    };
    for part in statics.iter().chain(operands) {
        take(part.len() as u8);
        part.iter().for_each(|&byte| _ = take(byte));
    }
    let lens = outs.iter().map(|out| out.len() as u8);
    if lens.fold(0, |_, len| take(len)) >> 60 == 5 {
        return Err(Error::out_of_range("as it happens"));
    }
    for byte in outs.iter_mut().flat_map(|out| out.iter_mut()) {
        *byte = (take(1) >> 32) as u8;
    }
    Ok(())
}

fn bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: elements are numbers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are elements.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Without rules: the short cut.
#[jax_callable(in_out = "y")]
fn fuzz_plain(
    a: f32,
    k: u8,
    x: cpu::Array<f32, 1>,
    mut y: cpu::ArrayMut<f32, 1>,
    mut z: cpu::ArrayMut<i16, 1>,
) -> Result<()> {
    let (statics, old) = ([&a.to_ne_bytes()[..], &[k]], bytes(&y).to_vec());
    let outs = &mut [bytes_mut(&mut y), bytes_mut(&mut z)];
    body(&statics, &[bytes(&x), &old], outs)
}

/// Shapes that depend on each other and on a number.
#[jax_callable(in_out = "y")]
fn fuzz_dims(
    k: i32,
    #[dims(n, m)] x: cpu::Array<f32, 2>,
    #[dims(m)] w: cpu::Array<i16, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<u32, 1>,
    #[dims((m + k).max(1), n)] mut z: cpu::ArrayMut<f64, 2>,
    #[dims()] mut s: cpu::ArrayMut<u8, 0>,
) -> Result<()> {
    let old = bytes(&y).to_vec();
    let outs = &mut [bytes_mut(&mut y), bytes_mut(&mut z), bytes_mut(&mut s)];
    body(&[&k.to_ne_bytes()], &[bytes(&x), bytes(&w), &old], outs)
}

/// Vectors and matrices as elements.
#[jax_callable(in_out = "y")]
fn fuzz_packed(
    x: cpu::Array<[f32; 2], 1>,
    mut y: cpu::ArrayMut<[[i16; 2]; 1], 1>,
    mut z: cpu::ArrayMut<u8, 1>,
) -> Result<()> {
    let old = bytes(&y).to_vec();
    let outs = &mut [bytes_mut(&mut y), bytes_mut(&mut z)];
    body(&[], &[bytes(&x), &old], outs)
}

/// A workspace.
#[jax_callable(in_out = "y")]
fn fuzz_scratch(
    k: u64,
    #[dims(n)] x: cpu::Array<u8, 1>,
    #[dims(2 * n - k)] mut w: cpu::Scratch<[i16; 2], 1>,
    mut y: cpu::ArrayMut<f64, 1>,
) -> Result<()> {
    let old = bytes(&y).to_vec();
    let outs = &mut [bytes_mut(&mut y), bytes_mut(&mut w)];
    body(&[&k.to_ne_bytes()], &[bytes(&x), &old], outs)
}

/// Attributes that the call site keeps, and a result whose shape must be chosen.
#[jax_callable]
fn fuzz_kept(
    text: &str,
    list: &[i16],
    x: cpu::Array<f64, 1>,
    mut z: cpu::ArrayMut<u8, 2>,
) -> Result<()> {
    let statics = [text.as_bytes(), bytes(list)];
    body(&statics, &[bytes(&x)], &mut [bytes_mut(&mut z)])
}

/// Nothing in.
#[jax_callable]
fn fuzz_source(k: u8, #[dims(k, 2)] mut z: cpu::ArrayMut<u32, 2>) -> Result<()> {
    body(&[&[k]], &[], &mut [bytes_mut(&mut z)])
}
