//! Products by cuBLAS.

use jax_callable::cuda::{BlasElement, Gemm, Op};
use jax_callable::prelude::*;

fn product<T: BlasElement>(
    cx: &cuda::Context,
    gemm: Gemm<T::Scale>,
    a: cuda::Array<T, 2>,
    b: cuda::Array<T, 2>,
    mut c: cuda::ArrayMut<T, 2>,
    mut workspace: cuda::ArrayMut<u8, 1>,
) -> Result<()> {
    cx.blas(&mut workspace)?.gemm(gemm, &a, &b, &mut c)
}

macro_rules! products {
    ($($name:ident $ty:ty;)*) => {$(
        /// c <- a b
        #[jax_callable]
        fn $name(
            cx: &cuda::Context,
            #[dims(n, k)] a: cuda::Array<$ty, 2>,
            #[dims(k, m)] b: cuda::Array<$ty, 2>,
            #[dims(n, m)] c: cuda::ArrayMut<$ty, 2>,
            #[dims(33_554_432)] workspace: cuda::ArrayMut<u8, 1>,
        ) -> Result<()> {
            product::<$ty>(cx, Gemm::default(), a, b, c, workspace)
        }
    )*};
}

products! {
    gemm_f32 f32;
    gemm_f64 f64;
    gemm_f16 f16;
    gemm_bf16 bf16;
    gemm_c64 Complex<f32>;
    gemm_c128 Complex<f64>;
}

/// c <- alpha a^T b^T + beta c, in place, never captured.
#[jax_callable(in_out = c, graph_mode = None)]
fn gemm_transposed(
    cx: &cuda::Context,
    alpha: f32,
    beta: f32,
    #[dims(k, n)] a: cuda::Array<f32, 2>,
    #[dims(m, k)] b: cuda::Array<f32, 2>,
    #[dims(n, m)] c: cuda::ArrayMut<f32, 2>,
    #[dims(33_554_432)] workspace: cuda::ArrayMut<u8, 1>,
) -> Result<()> {
    let gemm = Gemm {
        alpha,
        beta,
        op_a: Op::Transpose,
        op_b: Op::Transpose,
    };
    product::<f32>(cx, gemm, a, b, c, workspace)
}

/// c <- a^H a, for each matrix of a stack.
#[jax_callable]
fn gemm_stack(
    cx: &cuda::Context,
    #[dims(s, n, n)] a: cuda::Array<Complex<f32>, 3>,
    #[dims(s, n, n)] mut c: cuda::ArrayMut<Complex<f32>, 3>,
    #[dims(33_554_432)] mut workspace: cuda::ArrayMut<u8, 1>,
) -> Result<()> {
    let mut blas = cx.blas(&mut workspace)?;
    let gemm = Gemm {
        op_a: Op::Adjoint,
        ..Gemm::default()
    };
    blas.gemm_batched(gemm, &a, &a, &mut c)
}

/// Gives cuBLAS no memory.
#[jax_callable]
fn gemm_without_workspace(
    cx: &cuda::Context,
    a: cuda::Array<f32, 2>,
    c: cuda::ArrayMut<f32, 2>,
    #[dims(0)] workspace: cuda::ArrayMut<u8, 1>,
) -> Result<()> {
    product::<f32>(cx, Gemm::default(), a, a, c, workspace)
}
