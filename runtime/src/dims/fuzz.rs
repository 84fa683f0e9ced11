//! Random expressions and shapes against arithmetic on wide integers.

use super::*;
use crate::fuzzing::choices::Choices;
use crate::param::Definition;
use crate::prelude::{cpu, jax_callable};
use std::ptr;

/// What a dimension is in the mathematics of it: no step may leave 64 bits.
pub(crate) fn model(dim: &Dim, name: &dyn Fn(&Dim) -> Option<i128>) -> Option<i128> {
    let Dim::Op(op, a, b) = dim else {
        return match dim {
            Dim::Const(value) => Some(i128::from(*value)),
            other => name(other),
        };
    };
    let (a, b) = (model(a, name)?, model(b, name)?);
    let divides = matches!(op, DimOp::Div | DimOp::Rem | DimOp::DivCeil);
    if divides && b == 0 {
        return None;
    }
    // Rounded towards zero, then down.
    let floor = |a: i128, b: i128| a / b - i128::from(a % b != 0 && (a < 0) != (b < 0));
    let value = match op {
        DimOp::Add => a + b,
        DimOp::Sub => a - b,
        DimOp::Mul => a * b,
        DimOp::Div => floor(a, b),
        DimOp::Rem => a - b * floor(a, b),
        DimOp::DivCeil => -floor(-a, b),
        DimOp::Min => a.min(b),
        DimOp::Max => a.max(b),
    };
    i64::try_from(value).is_ok().then_some(value)
}

/// Gives the parameters for random expressions, and is never called.
#[jax_callable]
fn fuzz_dims_of(
    k: i32,
    l: u64,
    #[dims(n, m)] x: cpu::Array<f32, 2>,
    #[dims(n)] y: cpu::Array<f32, 1>,
    mut z: cpu::ArrayMut<f32, 1>,
) {
    let _ = (k, l, x, y);
    z.fill(0.0);
}

const LEAVES: [Dim; 7] = [
    Dim::Name(0),
    Dim::Name(1),
    Dim::Axis(2, 0),
    Dim::Axis(2, 1),
    Dim::Axis(3, 0),
    Dim::Scalar(0),
    Dim::Scalar(1),
];

pub(super) const OPS: [DimOp; 8] = [
    DimOp::Add,
    DimOp::Sub,
    DimOp::Mul,
    DimOp::Div,
    DimOp::Rem,
    DimOp::DivCeil,
    DimOp::Min,
    DimOp::Max,
];

/// A call: shapes, and the numbers as they travel.
#[derive(Debug)]
pub(super) struct Case {
    operands: [Vec<i64>; 2],
    result: Vec<i64>,
    numbers: [i64; 2],
}

impl Shapes for Case {
    fn operand(&self, index: usize) -> &[i64] {
        &self.operands[index]
    }

    fn result(&self, _: usize) -> &[i64] {
        &self.result
    }

    fn scratch(&self, _: usize) -> &[i64] {
        unreachable!("there is none")
    }

    fn number(&self, param: usize) -> Result<i64> {
        Ok(self.numbers[param])
    }
}

impl Case {
    #[cfg(test)]
    pub(super) fn new(shape: Vec<i64>, numbers: [i64; 2]) -> Case {
        let operands = [shape.clone(), vec![shape[0]]];
        Case {
            operands,
            result: Vec::new(),
            numbers,
        }
    }

    fn leaf(&self, leaf: &Dim) -> Option<i128> {
        Some(i128::from(match *leaf {
            Dim::Name(0) | Dim::Axis(2, 0) => self.operands[0][0],
            Dim::Name(_) | Dim::Axis(2, _) => self.operands[0][1],
            Dim::Axis(..) => self.operands[1][0],
            Dim::Scalar(0) => self.numbers[0],
            // It is unsigned.
            _ => return (self.numbers[1] >= 0).then_some(self.numbers[1].into()),
        }))
    }
}

/// One expression for a dimension.
pub fn expressions(bytes: &[u8]) {
    check_expression(&mut Choices::new(bytes));
}

#[cfg(test)]
pub(crate) fn check_one(choices: &mut Choices<'_>, seen: &mut [u64; 2]) {
    seen[usize::from(check_expression(choices))] += 1;
}

/// Whether the expression has a value that a dimension can be.
fn check_expression(choices: &mut Choices) -> bool {
    let number = |choices: &mut Choices| match choices.below(5) {
        0..3 => choices.below(7) as i64 - 2,
        3 => choices.number(),
        _ => choices.pick(&[
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            1 << 32,
            -(1 << 31),
            1 << 62,
        ]),
    };
    let size = |choices: &mut Choices| number(choices).max(0);
    let [n, m, other] = [(); 3].map(|()| size(choices));
    let mut case = Case {
        operands: [vec![n, m], vec![if choices.one_in(8) { other } else { n }]],
        result: Vec::new(),
        numbers: [i64::from(number(choices) as i32), number(choices)],
    };
    // Postfix; an operation without operands is left out.
    let mut stack: Vec<Box<Dim>> = Vec::new();
    let mut parts: Vec<Box<Dim>> = Vec::new();
    for _ in 0..choices.below(24) {
        let dim = match choices.below(16) {
            leaf @ 0..7 => match LEAVES[leaf] {
                Dim::Name(name) => Dim::Name(name),
                Dim::Axis(param, axis) => Dim::Axis(param, axis),
                _ => Dim::Scalar(leaf - 5),
            },
            7 => Dim::Const(number(choices)),
            dice => match (stack.pop(), stack.pop()) {
                (Some(b), Some(a)) => {
                    let [a, b] = [a, b].map(|part| {
                        parts.push(part);
                        // SAFETY: the parts stay where they are, and are dropped after the
                        // expression.
                        unsafe { &*ptr::from_ref::<Dim>(parts.last().unwrap()) }
                    });
                    Dim::Op(OPS[dice - 8], a, b)
                }
                (Some(one), None) => {
                    stack.push(one);
                    continue;
                }
                _ => continue,
            },
        };
        stack.push(Box::new(dim));
    }
    let dim = stack.pop().unwrap_or(Box::new(Dim::Const(1)));
    let is_bound = case.operands[1][0] == n;
    let expected = model(&dim, &|leaf| case.leaf(leaf)).filter(|_| is_bound);
    let text = format!("{dim:?} in {case:?}");
    with_output(*dim, |callable| {
        let inferred = infer(callable, &case);
        let possible = expected.filter(|&size| size >= 0);
        assert_eq!(
            inferred.ok(),
            possible.map(|size| vec![vec![size as i64]]),
            "{text}"
        );
        for (size, is_right) in [(expected, true), (expected.map(|size| size ^ 1), false)] {
            case.result = vec![size.unwrap_or(0) as i64];
            let checked = check(callable, &case, false).is_ok();
            assert_eq!(checked, is_right && expected.is_some(), "{text}");
        }
        // Chosen for the call: only the inputs count.
        assert_eq!(check(callable, &case, true).is_ok(), is_bound, "{text}");
        possible.is_some()
    })
}

/// The callable above with an expression for its output.
pub(super) fn with_output<T>(dim: Dim, work: impl FnOnce(&Callable) -> T) -> T {
    let dims = [dim];
    let original = fuzz_dims_of::Def::CALLABLE;
    let param = |param: &Param| Param { ..*param };
    let mut params: Vec<Param> = original.params.iter().map(param).collect();
    // SAFETY: neither is looked at after `work`, before which both are not dropped.
    unsafe {
        params[4].dims = Some(&*ptr::from_ref::<[Dim]>(&dims));
        let params: &'static [Param] = &*ptr::from_ref::<[Param]>(&params);
        work(&Callable {
            params,
            ..*original
        })
    }
}
