//! Every key, in every way that it can be written.
#![deny(warnings)]
use jax_callable::prelude::*;

cuda::module! {
    mod kernels = ptx("");
}

mod inner {
    use jax_callable::cuda;

    cuda::module! {
        pub mod kernels = ptx("");
    }
}

/// Named by a string.
#[jax_callable(name = "renamed", num_outputs = 1, in_out = "y")]
fn string(_x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = y;
}

#[jax_callable(in_out = y, graph_mode = None, vmap_method = None)]
fn words(_x: cpu::Array<f32, 1>, _z: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = y;
}

#[jax_callable(in_out = (x, "y"), graph_mode = GraphMode::Jax, vmap_method = "sequential")]
fn tuple(x: cpu::ArrayMut<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(in_out = ["x", y], graph_mode = "Jax", vmap_method = expand_dims)]
fn array(x: cpu::ArrayMut<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(in_out(x, y), has_side_effect, graph_cache_max = 8, preload = AllDevices)]
fn list(x: cpu::ArrayMut<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(
    in_out = [],
    has_side_effect = true,
    graph_cache_max = unlimited,
    preload = "CurrentDevice",
    modules = kernels,
    crate = ::jax_callable,
)]
fn more(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(n)] y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(
    has_side_effect = false,
    graph_cache_max = "unlimited",
    preload = Preload::None,
    modules(kernels, inner::kernels),
    state = Plan::new(k, 4),
    batch_dims = n,
)]
fn state(
    #[dims(n)] x: cpu::Array<f32, 1>,
    k: i32,
    plan: &State<Plan>,
    #[dims(n)] y: cpu::ArrayMut<f32, 1>,
) {
    let _ = (x, k, plan.0 + plan.1, y);
}

struct Plan(i32, i32);

impl Plan {
    fn new(k: i32, l: i32) -> Plan {
        Plan(k, l)
    }
}

#[jax_callable(output_dims(c = (n, 2 * n + 1), d = m, e = []))]
fn output_dims_by_name(
    #[dims(n, m)] x: cpu::Array<f32, 2>,
    c: cpu::ArrayMut<f32, 2>,
    d: cpu::ArrayMut<f32, 1>,
    e: cpu::ArrayMut<f32, 0>,
) {
    let _ = (x, c, d, e);
}

#[jax_callable(output_dims = (m, n % 3))]
fn output_dims_tuple(#[dims(n, m)] x: cpu::Array<f32, 2>, y: cpu::ArrayMut<f32, 2>) {
    let _ = (x, y);
}

#[jax_callable(output_dims = 5)]
fn output_dims_integer(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(output_dims = (x.dim(0) - 1).div_ceil(k).min(n).max(1))]
fn output_dims_expression(
    #[dims(n)] x: cpu::Array<f32, 1>,
    k: u8,
    y: cpu::ArrayMut<f32, 1>,
    z: cpu::ArrayMut<f32, 1>,
) {
    let _ = (x, k, y, z);
}

fn main() {}
