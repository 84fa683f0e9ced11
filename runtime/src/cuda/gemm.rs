//! Products of row-major matrices in the terms of cuBLAS, whose matrices are column-major.

use super::cublas::{Matrix, Product};
use crate::error::{Error, Result};
use std::ffi::c_int;

/// What is done with a matrix before it is multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Nothing.
    #[default]
    None,
    /// It is transposed.
    Transpose,
    /// It is transposed and conjugated.
    Adjoint,
}

/// The factors and operations of a product `c <- alpha op_a(a) op_b(b) + beta c`. By default
/// it is `c <- a b`.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<S> {
    /// The factor of the product.
    pub alpha: S,
    /// The factor of what `c` holds before. With 0 that is not read.
    pub beta: S,
    /// The operation on `a`.
    pub op_a: Op,
    /// The operation on `b`.
    pub op_b: Op,
}

macro_rules! defaults {
    ($($ty:ty: $zero:expr, $one:expr;)*) => {$(
        impl Default for Gemm<$ty> {
            fn default() -> Self {
                Gemm { alpha: $one, beta: $zero, op_a: Op::None, op_b: Op::None }
            }
        }
    )*};
}

defaults! {
    f32: 0.0, 1.0;
    f64: 0.0, 1.0;
}
#[cfg(feature = "num-complex")]
defaults! {
    num_complex::Complex<f32>: num_complex::Complex::new(0.0, 0.0), num_complex::Complex::new(1.0, 0.0);
    num_complex::Complex<f64>: num_complex::Complex::new(0.0, 0.0), num_complex::Complex::new(1.0, 0.0);
}

/// The product of row-major matrices in the terms of column-major ones, without addresses and
/// types. None if there is nothing to write.
pub(super) fn plan(
    op_a: Op,
    op_b: Op,
    a: [usize; 3],
    b: [usize; 3],
    c: [usize; 3],
) -> Result<Option<Product>> {
    let turned = |op: Op, [batch, rows, columns]: [usize; 3]| match op {
        Op::None => [batch, rows, columns],
        _ => [batch, columns, rows],
    };
    let ([batch_a, m, k], [batch_b, k_b, n]) = (turned(op_a, a), turned(op_b, b));
    if batch_a != batch_b || k != k_b || c != [batch_a, m, n] {
        let text = |[batch, rows, columns]: [usize; 3]| match batch {
            1 => format!("[{rows}, {columns}]"),
            _ => format!("[{batch}, {rows}, {columns}]"),
        };
        return Err(Error::invalid_argument(format!(
            "a matrix of shape {} is no product of {} ({op_a:?}) and {} ({op_b:?})",
            text(c),
            text(a),
            text(b)
        )));
    }
    if c.contains(&0) {
        return Ok(None);
    }
    let int = |size: usize| {
        c_int::try_from(size).map_err(|_| {
            Error::invalid_argument(format!(
                "cuBLAS takes no dimension of {size}: 31 bits at most"
            ))
        })
    };
    let matrix = |op: Op, [_, rows, columns]: [usize; 3]| {
        Ok::<_, Error>(Matrix {
            address: 0,
            leading: int(columns.max(1))?,
            stride: (rows * columns) as i64,
            operation: match op {
                Op::None => 0,
                Op::Transpose => 1,
                Op::Adjoint => 2,
            },
        })
    };
    Ok(Some(Product {
        m: int(n)?,
        n: int(m)?,
        k: int(k)?,
        a: matrix(op_b, b)?,
        b: matrix(op_a, a)?,
        c: matrix(Op::None, c)?,
        batch: int(batch_a)?,
        dtype: 0,
        compute: 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Op, plan};

    /// Does in plain loops what cuBLAS does with column-major matrices.
    fn multiply(
        op_a: Op,
        op_b: Op,
        a: ([usize; 3], &[f64]),
        b: ([usize; 3], &[f64]),
        c: [usize; 3],
    ) -> Vec<f64> {
        let product = plan(op_a, op_b, a.0, b.0, c).unwrap().unwrap();
        let (left, right) = ((product.a, b.1), (product.b, a.1));
        let at = |(matrix, data): (crate::cuda::cublas::Matrix, &[f64]),
                  batch: usize,
                  row: usize,
                  column: usize| {
            let (row, column) = if matrix.operation == 0 {
                (row, column)
            } else {
                (column, row)
            };
            data[batch * matrix.stride as usize + row + column * matrix.leading as usize]
        };
        let mut out = vec![f64::NAN; c.iter().product()];
        for batch in 0..product.batch as usize {
            for i in 0..product.m as usize {
                for j in 0..product.n as usize {
                    let sum = (0..product.k as usize)
                        .map(|k| at(left, batch, i, k) * at(right, batch, k, j))
                        .sum();
                    let place =
                        batch * product.c.stride as usize + i + j * product.c.leading as usize;
                    out[place] = sum;
                }
            }
        }
        out
    }

    #[test]
    fn products_are_those_of_row_major_matrices() {
        let a: Vec<f64> = (0..12).map(f64::from).collect();
        let b: Vec<f64> = (0..16).map(|i| f64::from(i) - 7.0).collect();
        for (op_a, op_b) in [
            (Op::None, Op::None),
            (Op::Transpose, Op::None),
            (Op::None, Op::Transpose),
            (Op::Transpose, Op::Adjoint),
        ] {
            let shape_a = if op_a == Op::None {
                [2, 3, 2]
            } else {
                [2, 2, 3]
            };
            let shape_b = if op_b == Op::None {
                [2, 2, 4]
            } else {
                [2, 4, 2]
            };
            let got = multiply(op_a, op_b, (shape_a, &a), (shape_b, &b), [2, 3, 4]);
            for batch in 0..2 {
                for i in 0..3 {
                    for j in 0..4 {
                        let sum: f64 = (0..2)
                            .map(|k| {
                                let a_at = if op_a == Op::None {
                                    i * 2 + k
                                } else {
                                    k * 3 + i
                                };
                                let b_at = if op_b == Op::None {
                                    k * 4 + j
                                } else {
                                    j * 2 + k
                                };
                                a[batch * 6 + a_at] * b[batch * 8 + b_at]
                            })
                            .sum();
                        assert_eq!(got[batch * 12 + i * 4 + j], sum, "{op_a:?} {op_b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let none = Op::None;
        let error = plan(none, none, [1, 2, 3], [1, 4, 5], [1, 2, 5])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("[2, 5]") && error.contains("[2, 3]") && error.contains("[4, 5]"),
            "{error}"
        );
        assert!(plan(none, none, [2, 2, 3], [1, 3, 5], [2, 2, 5]).is_err());
        assert!(plan(Op::Transpose, none, [1, 2, 3], [1, 3, 5], [1, 2, 5]).is_err());
        assert!(plan(none, none, [1, 1 << 33, 1], [1, 1, 1], [1, 1 << 33, 1]).is_err());
    }

    #[test]
    fn nothing_is_written_where_nothing_is() {
        let none = Op::None;
        assert!(
            plan(none, none, [1, 0, 3], [1, 3, 5], [1, 0, 5])
                .unwrap()
                .is_none()
        );
        // A sum over nothing is written: it is 0.
        assert!(
            plan(none, none, [1, 2, 0], [1, 0, 5], [1, 2, 5])
                .unwrap()
                .is_some()
        );
    }
}
