//! Named dimensions and output shapes, checked in the handler as Python did in tracing.

use crate::error::{Error, Result};
use crate::plan::MAX_DIM_NAMES;
use crate::signature::{Callable, Dim, DimOp, Kind, Param, StaticType};
use crate::statics;

/// What expressions refer to: the own dimensions (without batch axes and packed ones) of
/// each operand, result and scratch, and the numbers among the static attributes, as they travel.
pub(crate) trait Shapes {
    fn operand(&self, index: usize) -> &[i64];
    fn result(&self, index: usize) -> &[i64];
    fn scratch(&self, index: usize) -> &[i64];
    fn number(&self, param: usize) -> Result<i64>;
}

/// Checks the shapes of a call against the callable's rules.
///
/// With `outputs_given` the shapes of pure outputs were chosen for this call, and are not
/// checked.
pub(crate) fn check(callable: &Callable, shapes: &dyn Shapes, outputs_given: bool) -> Result<()> {
    let mut scope = Scope {
        callable,
        shapes,
        bound: [None; MAX_DIM_NAMES],
    };
    scope.bind()?;
    scope.check_operands()?;
    if !outputs_given {
        scope.check_outputs()?;
    }
    scope.check_scratch()
}

/// The shapes of the pure outputs by the callable's rules, in their order.
pub(crate) fn infer(callable: &Callable, shapes: &dyn Shapes) -> Result<Vec<Vec<i64>>> {
    let outputs = callable.results().filter(|(_, param)| !param.in_out);
    infer_all(callable, shapes, outputs)
}

/// The shapes of scratch by the callable's rules, in its order.
pub(crate) fn infer_scratch(callable: &Callable, shapes: &dyn Shapes) -> Result<Vec<Vec<i64>>> {
    infer_all(callable, shapes, callable.scratch())
}

fn infer_all(
    callable: &Callable,
    shapes: &dyn Shapes,
    params: impl Iterator<Item = (usize, &'static Param)>,
) -> Result<Vec<Vec<i64>>> {
    let mut scope = Scope {
        callable,
        shapes,
        bound: [None; MAX_DIM_NAMES],
    };
    scope.bind()?;
    params
        .map(|(_, param)| match param.dims {
            Some(dims) => dims.iter().map(|dim| scope.size(param, dim)).collect(),
            None if callable.operands().next().is_some() => Ok(shapes.operand(0).to_vec()),
            None => Err(no_shape(param)),
        })
        .collect()
}

/// An output without a rule of its own whose shape is not the first array's.
#[cold]
fn not_as_first(param: &Param, first: &Param, expected: &[i64], actual: &[i64]) -> Error {
    Error::invalid_argument(format!(
        "parameter `{}`: expected the shape {expected:?} of `{}`, the first array, got {actual:?}",
        param.name, first.name
    ))
}

fn no_shape(param: &Param) -> Error {
    Error::invalid_argument(format!(
        "parameter `{}`: nothing gives its shape",
        param.name
    ))
}

struct Scope<'a> {
    callable: &'a Callable,
    shapes: &'a dyn Shapes,
    bound: [Option<i64>; MAX_DIM_NAMES],
}

impl Scope<'_> {
    /// A bare name on an operand's axis is bound where it first stands.
    fn bind(&mut self) -> Result<()> {
        for (operand, (_, param)) in self.callable.operands().enumerate() {
            let actual = self.shapes.operand(operand);
            for (axis, dim) in param.dims.unwrap_or_default().iter().enumerate() {
                let Dim::Name(name) = *dim else { continue };
                match self.bound[name] {
                    None => self.bound[name] = Some(actual[axis]),
                    Some(bound) if bound == actual[axis] => {}
                    Some(bound) => {
                        return Err(Error::invalid_argument(format!(
                            "parameter `{}`: axis {axis} is `{}`, which is {bound}, but its size \
                             is {}",
                            param.name, self.callable.dim_names[name], actual[axis],
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_operands(&self) -> Result<()> {
        for (operand, (_, param)) in self.callable.operands().enumerate() {
            if let Some(dims) = param.dims {
                self.check_axes(param, dims, self.shapes.operand(operand))?;
            }
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<()> {
        let first = self.callable.operands().next().map(|(_, param)| param);
        for (result, (_, param)) in self.callable.results().enumerate() {
            if param.in_out {
                continue;
            }
            let actual = self.shapes.result(result);
            match (param.dims, first) {
                (Some(dims), _) => self.check_axes(param, dims, actual)?,
                (None, Some(first)) => {
                    let expected = self.shapes.operand(0);
                    if actual != expected {
                        return Err(not_as_first(param, first, expected, actual));
                    }
                }
                (None, None) => return Err(no_shape(param)),
            }
        }
        Ok(())
    }

    fn check_scratch(&self) -> Result<()> {
        for (index, (_, param)) in self.callable.scratch().enumerate() {
            let dims = param.dims.ok_or_else(|| no_shape(param))?;
            self.check_axes(param, dims, self.shapes.scratch(index))?;
        }
        Ok(())
    }

    fn check_axes(&self, param: &Param, dims: &[Dim], actual: &[i64]) -> Result<()> {
        for (axis, (dim, &actual)) in dims.iter().zip(actual).enumerate() {
            let expected = self.eval(dim).map_err(|error| {
                Error::invalid_argument(format!("parameter `{}`: axis {axis}: {error}", param.name))
            })?;
            if expected != actual {
                return Err(Error::invalid_argument(format!(
                    "parameter `{}`: expected axis {axis} to be {expected}, got {actual}",
                    param.name,
                )));
            }
        }
        Ok(())
    }

    fn eval(&self, dim: &Dim) -> Result<i64> {
        match *dim {
            Dim::Const(value) => Ok(value),
            Dim::Name(name) => self.bound[name].ok_or_else(|| {
                Error::internal(format!(
                    "nothing binds the dimension `{}`",
                    self.callable.dim_names[name]
                ))
            }),
            Dim::Axis(param, axis) => {
                let operand = self.callable.operands().position(|(i, _)| i == param);
                let dims = operand.map(|operand| self.shapes.operand(operand));
                dims.and_then(|dims| dims.get(axis).copied())
                    .ok_or_else(|| Error::internal("an expression names an axis that is not there"))
            }
            Dim::Scalar(param) => self.scalar(param),
            Dim::Op(op, a, b) => apply(op, self.eval(a)?, self.eval(b)?),
        }
    }

    /// A dimension to be.
    fn size(&self, param: &Param, dim: &Dim) -> Result<i64> {
        match self.eval(dim)? {
            size if size < 0 => Err(Error::invalid_argument(format!(
                "parameter `{}`: its shape would have the negative dimension {size}",
                param.name
            ))),
            size => Ok(size),
        }
    }

    fn scalar(&self, index: usize) -> Result<i64> {
        let param = &self.callable.params[index];
        let value = self.shapes.number(index)?;
        match (param.ty.kind, param.ty.value) {
            (Kind::Static, Some(StaticType::Number(dtype, _))) => statics::as_dim(dtype, value),
            _ => None,
        }
        .ok_or_else(|| {
            Error::out_of_range(format!("`{}` is too large for a dimension", param.name))
        })
    }
}

/// One operation, checked.
fn apply(op: DimOp, a: i64, b: i64) -> Result<i64> {
    let result = match op {
        DimOp::Add => a.checked_add(b),
        DimOp::Sub => a.checked_sub(b),
        DimOp::Mul => a.checked_mul(b),
        DimOp::Min => Some(a.min(b)),
        DimOp::Max => Some(a.max(b)),
        DimOp::Div | DimOp::Rem | DimOp::DivCeil if b == 0 => {
            return Err(Error::invalid_argument("division by zero"));
        }
        DimOp::Div => floor_div(a, b),
        // -1 divides everything; `checked_rem` would overflow for the least number.
        DimOp::Rem if b == -1 => Some(0),
        DimOp::Rem => a.checked_rem(b).map(|r| {
            if r != 0 && (r < 0) != (b < 0) {
                r + b
            } else {
                r
            }
        }),
        DimOp::DivCeil => floor_div(a, b)
            .and_then(|q| q.checked_add(i64::from(a.checked_rem(b).is_some_and(|r| r != 0)))),
    };
    result.ok_or_else(|| Error::out_of_range(format!("`{a} {} {b}` overflows", op.name())))
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    })
}

#[cfg(test)]
mod agreement;
#[cfg(any(test, fuzzing))]
#[allow(unsafe_code)]
pub(crate) mod fuzz;
#[cfg(test)]
mod random_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_rounds_down_and_is_checked() {
        for a in -7_i64..=7 {
            for b in [-3_i64, -2, -1, 1, 2, 3] {
                let exact = a as f64 / b as f64;
                assert_eq!(apply(DimOp::Div, a, b).unwrap(), exact.floor() as i64);
                assert_eq!(apply(DimOp::DivCeil, a, b).unwrap(), exact.ceil() as i64);
                let rem = a - b * exact.floor() as i64;
                assert_eq!(apply(DimOp::Rem, a, b).unwrap(), rem, "{a} % {b}");
            }
        }
        assert_eq!(apply(DimOp::Rem, i64::MIN, -1).unwrap(), 0);
        for (op, a, b) in [
            (DimOp::Add, i64::MAX, 1),
            (DimOp::Sub, i64::MIN, 1),
            (DimOp::Mul, i64::MAX, 2),
            (DimOp::Div, i64::MIN, -1),
            (DimOp::DivCeil, i64::MIN, -1),
            (DimOp::Div, 1, 0),
            (DimOp::Rem, 1, 0),
            (DimOp::DivCeil, 1, 0),
        ] {
            assert!(apply(op, a, b).is_err(), "{a} {} {b}", op.name());
        }
    }
}
