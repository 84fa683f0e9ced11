//! Random expressions in random signatures against a plain model.

use super::fuzz::{OPS, model};
use super::*;
use crate::param::FfiArg;
use crate::random::Random;
use crate::signature::{GraphCacheMax, GraphMode, ParamType};

/// An expression.
#[derive(Debug)]
enum Expr {
    Number(i64),
    Name(usize),
    Axis(usize, usize),
    Scalar(usize),
    Op(DimOp, Box<Expr>, Box<Expr>),
}

/// A signature and a call of it.
#[derive(Debug)]
struct Case {
    /// One number, then operands, then outputs.
    scalar: i64,
    operands: Vec<(Vec<Expr>, Vec<i64>)>,
    /// None has the shape of the first operand.
    outputs: Vec<Option<Vec<Expr>>>,
}

const NAMES: usize = 3;

impl Expr {
    fn random(random: &mut Random, case: &Case, depth: usize) -> Expr {
        match random.below(if depth == 0 { 4 } else { 7 }) {
            0 => Expr::Number(random.pick(&[0, 1, 2, 3, -1, i64::MAX, i64::MIN])),
            1 => Expr::Scalar(0),
            2 if !case.operands.is_empty() => {
                let operand = random.below(case.operands.len());
                match case.operands[operand].0.len() {
                    0 => Expr::Number(4),
                    rank => Expr::Axis(1 + operand, random.below(rank)),
                }
            }
            2 | 3 => Expr::Name(random.below(NAMES)),
            _ => {
                let op = random.pick(&OPS);
                let [a, b] = [(); 2].map(|()| Box::new(Expr::random(random, case, depth - 1)));
                Expr::Op(op, a, b)
            }
        }
    }

    /// As the macro writes it.
    fn dim(&self) -> Dim {
        let leak = |expr: &Expr| -> &'static Dim { Box::leak(Box::new(expr.dim())) };
        match self {
            Expr::Number(number) => Dim::Const(*number),
            Expr::Name(name) => Dim::Name(*name),
            Expr::Axis(param, axis) => Dim::Axis(*param, *axis),
            Expr::Scalar(param) => Dim::Scalar(*param),
            Expr::Op(op, a, b) => Dim::Op(*op, leak(a), leak(b)),
        }
    }

    fn value(&self, case: &Case, names: &[Option<i64>; NAMES]) -> Option<i64> {
        let value = model(&self.dim(), &|leaf| match leaf {
            Dim::Name(name) => names[*name].map(i128::from),
            Dim::Axis(param, axis) => Some(case.operands[param - 1].1[*axis].into()),
            _ => Some(case.scalar.into()),
        })?;
        i64::try_from(value).ok()
    }
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let mut case = Case {
            scalar: random.pick(&[0, 1, 2, 3, 5, -1, -2, i64::MAX, i64::MIN]),
            operands: Vec::new(),
            outputs: Vec::new(),
        };
        let sizes: [i64; NAMES] = std::array::from_fn(|_| random.below(5) as i64);
        for _ in 0..random.below(3) {
            let exprs: Vec<_> = (0..random.below(4))
                .map(|_| match random.one_in(12) {
                    true => Expr::random(random, &case, 1),
                    false => Expr::Name(random.below(NAMES)),
                })
                .collect();
            let shape = exprs.iter().map(|expr| match expr {
                Expr::Name(name) if !random.one_in(20) => sizes[*name],
                Expr::Number(number) if *number >= 0 => *number,
                _ => random.below(5) as i64,
            });
            let shape = shape.collect();
            case.operands.push((exprs, shape));
        }
        for _ in 0..1 + random.below(2) {
            let rank = random.below(4);
            let exprs = (0..rank).map(|_| Expr::random(random, &case, 3)).collect();
            case.outputs.push((!random.one_in(6)).then_some(exprs));
        }
        case
    }

    /// The signature, which stays for ever.
    fn callable(&self) -> &'static Callable {
        let leak =
            |exprs: &[Expr]| -> &'static [Dim] { Box::leak(exprs.iter().map(Expr::dim).collect()) };
        let param = |name, ty: ParamType, rank, dims| Param {
            name,
            ty: ParamType { rank, ..ty },
            in_out: false,
            dims,
        };
        let array = <crate::cpu::Array<'static, f32, 0> as FfiArg>::TYPE;
        let output = <crate::cpu::ArrayMut<'static, f32, 0> as FfiArg>::TYPE;
        let scalar = param("k", <i64 as FfiArg>::TYPE, 0, None);
        let operands = self.operands.iter();
        let operands = operands.map(|(exprs, _)| param("x", array, exprs.len(), Some(leak(exprs))));
        let outputs = self.outputs.iter().map(|exprs| {
            let rank = exprs.as_ref().map_or(0, Vec::len);
            param("y", output, rank, exprs.as_deref().map(leak))
        });
        let params: Vec<_> = [scalar]
            .into_iter()
            .chain(operands)
            .chain(outputs)
            .collect();
        Box::leak(Box::new(Callable {
            name: "f",
            module: "c",
            file: "",
            line: 0,
            doc: "",
            params: Box::leak(params.into_boxed_slice()),
            dim_names: &["a", "b", "c"],
            vmap_method: None,
            batch_dims: &[],
            has_side_effect: false,
            vjp: None,
            graph_mode: GraphMode::None,
            stage_in: None,
            stage_out: None,
            graph_cache_max: GraphCacheMax::Default,
            modules: None,
            preload: "",
            state: None,
        }))
    }

    /// What names stand for, if operands agree about it.
    fn names(&self) -> Option<[Option<i64>; NAMES]> {
        let mut names = [None; NAMES];
        for (exprs, shape) in &self.operands {
            for (expr, &size) in exprs.iter().zip(shape) {
                if let Expr::Name(name) = expr
                    && *names[*name].get_or_insert(size) != size
                {
                    return None;
                }
            }
        }
        Some(names)
    }

    /// The shapes of the outputs, if all have one.
    fn outputs(&self) -> Option<Vec<Vec<i64>>> {
        let names = self.names()?;
        let size = |expr: &Expr| expr.value(self, &names).filter(|&size| size >= 0);
        let shapes = self.outputs.iter().map(|exprs| match exprs {
            Some(exprs) => exprs.iter().map(size).collect(),
            None => self.operands.first().map(|(_, shape)| shape.clone()),
        });
        shapes.collect()
    }

    /// Whether the operands are what their expressions say.
    fn has_sound_operands(&self) -> bool {
        let Some(names) = self.names() else {
            return false;
        };
        self.operands.iter().all(|(exprs, shape)| {
            let mut pairs = exprs.iter().zip(shape);
            pairs.all(|(expr, &size)| expr.value(self, &names) == Some(size))
        })
    }
}

/// The shapes of a case, with these outputs.
struct Given<'a>(&'a Case, &'a [Vec<i64>]);

impl Shapes for Given<'_> {
    fn operand(&self, index: usize) -> &[i64] {
        &self.0.operands[index].1
    }

    fn result(&self, index: usize) -> &[i64] {
        &self.1[index]
    }

    fn scratch(&self, _: usize) -> &[i64] {
        unreachable!("there is none")
    }

    fn number(&self, _: usize) -> Result<i64> {
        Ok(self.0.scalar)
    }
}

#[test]
fn shapes_are_those_of_a_plain_model() {
    let mut seen = [0; 4];
    for seed in 1..=20_000 {
        let mut random = Random::new(seed);
        let case = Case::random(&mut random);
        let callable = case.callable();
        let expected = case.outputs();
        let got = infer(callable, &Given(&case, &[])).ok();
        assert_eq!(got, expected, "{seed}: {case:?}");
        let is_sound = case.has_sound_operands();
        if let Some(mut shapes) = expected {
            let checked = check(callable, &Given(&case, &shapes), false);
            assert_eq!(checked.is_ok(), is_sound, "{seed}: {checked:?}, {case:?}");
            // One axis that is another, and then only if nobody asks.
            let output = random.below(shapes.len());
            let rank = shapes[output].len();
            if is_sound && rank > 0 {
                shapes[output][random.below(rank)] ^= 1;
                assert!(check(callable, &Given(&case, &shapes), false).is_err());
                check(callable, &Given(&case, &shapes), true).unwrap();
            }
            seen[usize::from(is_sound)] += 1;
        } else {
            seen[2 + usize::from(is_sound)] += 1;
        }
    }
    // Of each kind there are some.
    assert!(seen.iter().all(|&n| n > 300), "{seen:?}");
}
