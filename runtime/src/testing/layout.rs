//! The frame of a call: shapes of its buffers, and attributes.

use super::Call;
use super::call::{Axes, Input};
use crate::dims::{self, Shapes};
use crate::error::{Error, Result};
use crate::ffi::host_frame::AttrSpec;
use crate::ffi::host_site::Layout;
use crate::plan::{BATCH, OUTPUT_DIMS};
use crate::signature::Param;

impl Call {
    pub(super) fn inputs(&self) -> Vec<&Input> {
        let operands = self.target.callable.operands();
        operands.map(|(_, param)| self.given(param)).collect()
    }

    /// The buffers: operands, then results with scratch behind them.
    pub(super) fn layouts(&self) -> Result<[Vec<Layout>; 2]> {
        let callable = self.target.callable;
        let inputs = self.inputs();
        let operands = callable.operands().zip(&inputs);
        let operands = operands.map(|((_, param), input)| {
            let dims = full_dims(param, &self.axis_sizes(&input.axes), &input.dims);
            Layout::new(param, dims, None)
        });
        let known = Known {
            call: self,
            inputs: &inputs,
        };
        let named = |error: Error| {
            let code = error.code();
            Error::new(code, format!("{}: {error}", self.target.path()))
        };
        let shapes = self.output_shapes(&known).map_err(named)?;
        let results = callable.results().zip(shapes);
        let results = results.map(|((index, param), dims)| {
            let operand = callable.operands().position(|(i, _)| i == index);
            Layout::new(param, full_dims(param, &self.batch, &dims), operand)
        });
        let shapes = dims::infer_scratch(callable, &known).map_err(named)?;
        let scratch = callable.scratch().zip(shapes);
        let scratch = scratch
            .map(|((_, param), dims)| Layout::new(param, full_dims(param, &[], &dims), None));
        Ok([operands.collect(), results.chain(scratch).collect()])
    }

    /// The own dimensions of all results.
    fn output_shapes(&self, known: &Known<'_>) -> Result<Vec<Vec<i64>>> {
        let callable = self.target.callable;
        let outputs = || callable.results().filter(|(_, param)| !param.in_out);
        let mut inferred = if outputs().all(|(_, p)| self.output_dims.contains_key(p.name)) {
            Vec::new()
        } else {
            dims::infer(callable, known)?
        }
        .into_iter();
        callable
            .results()
            .map(|(_, param)| {
                if param.in_out {
                    return Ok(self.given(param).dims.clone());
                }
                let inferred = inferred.next();
                let given = self.output_dims.get(param.name).cloned();
                given.or(inferred).ok_or_else(|| {
                    Error::invalid_argument(format!("nothing gives the shape of `{}`", param.name))
                })
            })
            .collect()
    }

    /// The attributes of the program.
    pub(super) fn attrs(&self) -> Vec<(String, AttrSpec)> {
        let values = self.values.iter();
        let values = values.map(|(name, value)| ((*name).to_owned(), value.clone()));
        let text = |name: &str, text: String| (name.to_owned(), AttrSpec::Str(text));
        let batch = (!self.batch.is_empty()).then(|| {
            let axes: Vec<_> = self
                .inputs()
                .iter()
                .map(|input| input.axes.text())
                .collect();
            text(BATCH, axes.join(","))
        });
        let chosen = (!self.output_dims.is_empty()).then(|| text(OUTPUT_DIMS, "call".into()));
        let mut attrs: Vec<_> = values.chain(batch).chain(chosen).collect();
        attrs.sort_by(|a, b| a.0.cmp(&b.0));
        attrs
    }
}

impl Axes {
    fn text(&self) -> String {
        match self {
            Axes::Some(axes) => axes
                .iter()
                .map(|&has| if has { '1' } else { '0' })
                .collect(),
            Axes::None => "-".into(),
        }
    }
}

/// What the shapes of outputs follow from.
struct Known<'a> {
    call: &'a Call,
    inputs: &'a [&'a Input],
}

impl Shapes for Known<'_> {
    fn operand(&self, index: usize) -> &[i64] {
        &self.inputs[index].dims
    }

    fn result(&self, _: usize) -> &[i64] {
        unreachable!("results are what is inferred")
    }

    fn scratch(&self, _: usize) -> &[i64] {
        unreachable!("scratch is what is inferred")
    }

    fn number(&self, param: usize) -> Result<i64> {
        let name = self.call.target.callable.params[param].name;
        match self.call.values.get(name) {
            Some(AttrSpec::I64(value)) => Ok(*value),
            _ => Err(Error::invalid_argument(format!("`{name}` is not given"))),
        }
    }
}

/// Batch axes, then the own dimensions, then the packed ones.
fn full_dims(param: &Param, axes: &[usize], own: &[i64]) -> Vec<i64> {
    let signed = |dim: &usize| *dim as i64;
    let axes = axes.iter().map(signed);
    axes.chain(own.iter().copied())
        .chain(param.ty.packed.iter().map(signed))
        .collect()
}
