//! Scratch: anywhere among the parameters, of any size that can be known, under other names.
#![deny(warnings)]
#![forbid(unsafe_code)]
use jax_callable::prelude::*;

type Workspace<'a> = cpu::Scratch<'a, f32, 1>;

#[jax_callable(batch_dims = n)]
fn sizes(
    k: u32,
    #[dims(2 * n, x.dim(1), k)] a: cpu::Scratch<f64, 3>,
    #[dims(n, m)] x: cpu::Array<f32, 2>,
    #[dims()] b: cpu::Scratch<[f32; 3], 0>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
    #[dims(m.div_ceil(4))] mut c: Workspace,
) {
    assert_eq!(a.shape(), [2 * x.dim(0), x.dim(1), k as usize]);
    c.fill(1.0);
    c[0] += b[[]][0].min(0.0) * 0.0;
    y.fill(c.len() as f32);
}

// The output's rule is not scratch's.
#[jax_callable(output_dims = 2)]
fn output_dims(#[dims(3)] w: Workspace, mut y: cpu::ArrayMut<f32, 1>) {
    y.fill(w.len() as f32);
}

#[jax_callable(graph_mode = WarpStaged, stage_in = x)]
fn on_a_gpu(
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] w: cuda::Scratch<f32, 1>,
    #[dims(n)] y: cuda::ArrayMut<f32, 1>,
) {
    let _ = (x.len(), w.device_ptr(), y);
}

fn main() {
    use jax_callable::testing::Target;

    let call = Target::find("sizes").unwrap().call().value("k", 2_u32);
    let outcome = call.input("x", [2, 9], &[0.0_f32; 18]).run().unwrap();
    assert_eq!(outcome.get::<f32>("y"), [3.0, 3.0]);
    let outcome = Target::find("output_dims").unwrap().call().run().unwrap();
    assert_eq!(outcome.get::<f32>("y"), [3.0, 3.0]);
}
