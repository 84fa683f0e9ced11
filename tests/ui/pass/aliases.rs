//! Types under other names: the traits decide what they are.
#![deny(warnings)]
use jax_callable::cpu::{Array as In, ArrayMut as Out, Context as Cx};
use jax_callable::prelude::*;

type Vector<'a> = cpu::Array<'a, f32, 1>;
type VectorMut<'a> = cpu::ArrayMut<'a, f32, 1>;
type Count = u32;
type Failure = jax_callable::Result<()>;
const RANK: usize = 2;

#[jax_callable(in_out = "y", num_outputs = 2, output_dims = (n, k))]
fn aliases(
    cx: &Cx,
    #[dims(n)] x: Vector<'_>,
    k: Count,
    #[dims(n)] y: VectorMut<'_>,
    z: Out<f32, RANK>,
) -> Failure {
    let _ = (cx, x, k, y, z);
    Ok(())
}

#[jax_callable(output_dims(y = x.dim(1)), num_outputs = 1)]
fn axis(x: In<f32, RANK>, y: VectorMut) {
    let _ = (x, y);
}

fn main() {}
