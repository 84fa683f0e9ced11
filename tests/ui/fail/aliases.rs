#![allow(unused_variables)]
use jax_callable::prelude::*;

type Input<'a> = cpu::Array<'a, f32, 1>;
type Output<'a> = cpu::ArrayMut<'a, f32, 1>;
type Deep<'a> = cpu::Array<'a, f32, 9>;
type Cx = cpu::Context;
type Real = f64;

#[jax_callable(in_out = x)]
fn in_out(x: Input, y: Output) {}

#[jax_callable(num_outputs = 2)]
fn num_outputs(x: Input, y: Output) {}

#[jax_callable]
fn no_output(x: Input) {}

#[jax_callable]
fn order(x: Input, y: Output, z: Input) {}

#[jax_callable]
fn context(x: Input, cx: &Cx, y: Output) {}

#[jax_callable(graph_mode = Warp)]
fn cuda(x: Input, y: Output) {}

#[jax_callable]
fn rank(x: Deep, y: Output) {}

#[jax_callable]
fn count(#[dims(n, m)] x: Input, y: Output) {}

#[jax_callable]
fn real(k: Real, #[dims(k)] y: Output) {}

#[jax_callable]
fn axis(x: Input, #[dims(x.dim(3))] y: Output) {}

#[jax_callable]
fn unbound(x: Input, #[dims(n)] y: Output) {}

#[jax_callable(output_dims(x = 4))]
fn output_dims(x: Input, y: Output) {}

fn main() {}
