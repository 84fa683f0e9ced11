#![allow(unused_variables)]
use jax_callable::prelude::*;

type Out<'a> = cuda::ArrayMut<'a, f32, 1>;

#[jax_callable]
fn f(y: Out) {}

fn main() {}
