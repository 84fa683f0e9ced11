//! Calls: arguments in, results out.

use super::value::{IntoStatic, Spec, sealed::Sealed};
use super::{Outcome, Target};
use crate::dims::{self, Shapes};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::ffi::host::{self, Context};
use crate::ffi::host_frame::{self, AttrSpec, HostResult, Memory};
use crate::ffi::host_site::{CallSite, Layout};
use crate::plan::{BATCH, OUTPUT_DIMS};
use crate::signature::{Kind, Param, Platform};
use std::collections::HashMap;

/// A call of a target, as XLA would make it.
///
/// The methods that name a parameter panic if the callable has none of that name and kind:
/// a test that is wrong itself should say so.
#[must_use = "a call does nothing before `run`"]
#[derive(Clone)]
pub struct Call {
    pub(super) target: Target,
    values: HashMap<&'static str, AttrSpec>,
    pub(super) inputs: HashMap<&'static str, Input>,
    pub(super) output_dims: HashMap<&'static str, Vec<i64>>,
    pub(super) batch: Option<usize>,
    alias: bool,
    api_version: i32,
    num_threads: usize,
}

#[derive(Clone)]
pub(super) struct Input {
    pub(super) batched: bool,
    /// Without batch axis and packed dimensions.
    pub(super) dims: Vec<i64>,
    pub(super) memory: Memory,
}

impl Call {
    pub(super) fn new(target: Target) -> Call {
        Call {
            target,
            values: HashMap::new(),
            inputs: HashMap::new(),
            output_dims: HashMap::new(),
            batch: None,
            alias: true,
            api_version: 3,
            num_threads: 2,
        }
    }

    /// Gives a static attribute.
    #[track_caller]
    pub fn value(mut self, name: &str, value: impl IntoStatic) -> Call {
        let param = self.param(name, |p| p.ty.kind == Kind::Static);
        let Spec(spec) = Sealed::spec(value);
        self.values.insert(param.name, spec);
        self
    }

    /// Gives an input or in-out: its shape, without packed dimensions, and its elements in
    /// row-major order.
    ///
    /// # Panics
    /// Also if the shape has another number of elements than `data`.
    #[track_caller]
    pub fn input<T: Element, const N: usize>(
        self,
        name: &str,
        shape: [usize; N],
        data: &[T],
    ) -> Call {
        self.any_input(name, &shape, data, false)
    }

    /// Gives an input or in-out that `jax.vmap` has batched: `data` holds as many arrays of
    /// this shape as [`Call::batch_size`] says, one after the other.
    #[track_caller]
    pub fn batched_input<T: Element, const N: usize>(
        self,
        name: &str,
        shape: [usize; N],
        data: &[T],
    ) -> Call {
        assert!(self.batch.is_some(), "call `batch_size` first");
        self.any_input(name, &shape, data, true)
    }

    /// Gives the shape of an input or in-out alone, for a call site, which gets its data when it is
    /// executed.
    #[track_caller]
    pub fn input_shape<const N: usize>(self, name: &str, shape: [usize; N]) -> Call {
        self.shape(name, &shape, false)
    }

    /// The same for an input that `jax.vmap` has batched.
    #[track_caller]
    pub fn batched_input_shape<const N: usize>(self, name: &str, shape: [usize; N]) -> Call {
        assert!(self.batch.is_some(), "call `batch_size` first");
        self.shape(name, &shape, true)
    }

    /// Makes it a call for a whole batch, as `jax.vmap` does. In-outs must be batched;
    /// results are.
    pub fn batch_size(mut self, size: usize) -> Call {
        self.batch = Some(size);
        self
    }

    /// Chooses the shape of an output for this call, as `output_dims=` does in Python.
    /// Without it the shapes follow the callable's rules.
    #[track_caller]
    pub fn output_dims<const N: usize>(mut self, name: &str, shape: [usize; N]) -> Call {
        let param = self.param(name, |p| p.ty.kind == Kind::ArrayMut && !p.in_out);
        self.output_dims
            .insert(param.name, shape.map(|dim| dim as i64).to_vec());
        self
    }

    /// Whether an in-out's operand and result are one buffer, as JAX asks of XLA (the
    /// default), or two.
    pub fn alias_in_outs(mut self, alias: bool) -> Call {
        self.alias = alias;
        self
    }

    /// Chooses the version of XLA's FFI API, 0.`minor` with `minor` from 1 to 5.
    ///
    /// # Panics
    /// If there is no such version.
    #[track_caller]
    pub fn api_version(mut self, minor: i32) -> Call {
        assert!(
            host::MINOR_VERSIONS.contains(&minor),
            "there is no XLA FFI API 0.{minor} here"
        );
        self.api_version = minor;
        self
    }

    /// Chooses the size of XLA's thread pool.
    pub fn num_threads(mut self, num_threads: usize) -> Call {
        self.num_threads = num_threads;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// The error that JAX would raise: the message begins with `crate.f: `.
    ///
    /// # Panics
    /// If an input is missing, or only its shape was given. (A missing static attribute is the
    /// handler's to find.)
    pub fn run(self) -> Result<Outcome> {
        let target = self.target;
        let callable = target.callable;
        assert!(
            callable.platform() == Platform::Cpu,
            "`{}` runs on a GPU: `instantiate` it",
            callable.name
        );
        let (operands, results) = self.layouts()?;
        let inputs = self.inputs();
        let mut operands: Vec<_> = operands
            .into_iter()
            .zip(&inputs)
            .map(|(layout, input)| layout.buffer(Some(&input.memory)))
            .collect();
        let mut results: Vec<_> = results
            .into_iter()
            .map(|layout| match layout.operand {
                Some(operand) if self.alias => HostResult::Operand(operand),
                _ => HostResult::Own(layout.buffer(None)),
            })
            .collect();
        let mut context = Context::new();
        context.num_threads = self.num_threads as i64;
        host_frame::run(
            (target.handlers.instantiate, target.handlers.execute),
            host::table(self.api_version),
            &context,
            self.attrs(),
            &mut operands,
            &mut results,
        )
        .map_err(Error::from)?;
        let results = callable
            .results()
            .zip(results)
            .map(|((_, param), result)| {
                let buffer = match &result {
                    HostResult::Own(buffer) => buffer,
                    HostResult::Operand(operand) => &operands[*operand],
                };
                (param.name, (buffer.dims.clone(), buffer.memory.clone()))
            })
            .collect();
        Ok(Outcome { callable, results })
    }

    /// Runs INSTANTIATE alone, for calls that are executed again and again: a call site, as an
    /// executable of XLA has it.
    ///
    /// # Errors
    /// As for [`run`](Call::run).
    ///
    /// # Panics
    /// If an input is missing.
    pub fn instantiate(self) -> Result<CallSite> {
        let (operands, results) = self.layouts()?;
        CallSite::new(
            self.target.handlers,
            self.api_version,
            self.attrs(),
            operands,
            results,
        )
    }

    fn inputs(&self) -> Vec<&Input> {
        let operands = self.target.callable.operands();
        operands.map(|(_, param)| self.given(param)).collect()
    }

    /// The buffers: operands, then results with scratch behind them.
    fn layouts(&self) -> Result<(Vec<Layout>, Vec<Layout>)> {
        let (callable, batch) = (self.target.callable, self.batch);
        let inputs = self.inputs();
        let operands: Vec<_> = callable
            .operands()
            .zip(&inputs)
            .map(|((_, param), input)| {
                let size = batch.filter(|_| input.batched);
                Layout::new(param, full_dims(param, &input.dims, size, batch), None)
            })
            .collect();
        let shapes = self.output_shapes(&inputs)?;
        let mut results: Vec<_> = callable
            .results()
            .zip(shapes)
            .map(|((index, param), dims)| {
                let operand = callable.operands().position(|(i, _)| i == index);
                Layout::new(param, full_dims(param, &dims, batch, batch), operand)
            })
            .collect();
        let known = Known {
            call: self,
            inputs: &inputs,
        };
        let scratch = callable
            .scratch()
            .zip(dims::infer_scratch(callable, &known)?);
        results.extend(scratch.map(|((_, param), dims)| {
            Layout::new(param, full_dims(param, &dims, None, None), None)
        }));
        Ok((operands, results))
    }

    #[track_caller]
    fn shape(mut self, name: &str, shape: &[usize], batched: bool) -> Call {
        let param = self.operand(name);
        assert!(param.ty.rank == shape.len(), "`{name}` has another rank");
        let input = Input {
            batched,
            dims: shape.iter().map(|&dim| dim as i64).collect(),
            memory: Memory::unwritten(0),
        };
        self.inputs.insert(param.name, input);
        self
    }

    #[track_caller]
    fn any_input<T: Element>(
        mut self,
        name: &str,
        shape: &[usize],
        data: &[T],
        batched: bool,
    ) -> Call {
        let param = self.operand(name);
        let copies = if batched { self.batch.unwrap_or(1) } else { 1 };
        assert_eq!(
            shape.iter().product::<usize>() * copies,
            data.len(),
            "the shape of `{name}` has another number of elements than its data"
        );
        assert!(
            param.ty.dtype == Some(T::DTYPE)
                && param.ty.packed == T::PACKED
                && param.ty.rank == shape.len(),
            "`{name}` has another element type or rank"
        );
        let input = Input {
            batched,
            dims: shape.iter().map(|&dim| dim as i64).collect(),
            memory: Memory::of(data),
        };
        self.inputs.insert(param.name, input);
        self
    }

    #[track_caller]
    pub(super) fn operand(&self, name: &str) -> &'static Param {
        self.param(name, |p| {
            p.ty.kind == Kind::Array || (p.ty.kind == Kind::ArrayMut && p.in_out)
        })
    }

    #[track_caller]
    fn param(&self, name: &str, fits: impl Fn(&Param) -> bool) -> &'static Param {
        let params = self.target.callable.params;
        let param = params.iter().find(|p| p.name == name && fits(p));
        param.unwrap_or_else(|| {
            panic!(
                "`{}` has no such parameter `{name}`",
                self.target.callable.name
            )
        })
    }

    #[track_caller]
    fn given(&self, param: &Param) -> &Input {
        self.inputs
            .get(param.name)
            .unwrap_or_else(|| panic!("the input `{}` is not given", param.name))
    }

    /// The own dimensions of all results.
    fn output_shapes(&self, inputs: &[&Input]) -> Result<Vec<Vec<i64>>> {
        let callable = self.target.callable;
        let outputs = || callable.results().filter(|(_, param)| !param.in_out);
        let mut inferred = if outputs().all(|(_, p)| self.output_dims.contains_key(p.name)) {
            Vec::new()
        } else {
            dims::infer(callable, &Known { call: self, inputs })?
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

    fn attrs(&self) -> Vec<(String, AttrSpec)> {
        let values = self.values.iter();
        let mut attrs: Vec<_> = values
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let mut own = |name: &str, text: String| attrs.push((name.into(), AttrSpec::Str(text)));
        if self.batch.is_some() {
            let axes = self
                .inputs()
                .into_iter()
                .map(|input| if input.batched { "1" } else { "0" });
            own(BATCH, axes.collect::<Vec<_>>().join(","));
        }
        if !self.output_dims.is_empty() {
            own(OUTPUT_DIMS, "call".into());
        }
        attrs
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

/// The batch axis, if the call is a batch's (of size 1 where the array is not), then the
/// own dimensions, then the packed ones.
fn full_dims(param: &Param, own: &[i64], size: Option<usize>, batch: Option<usize>) -> Vec<i64> {
    let axis = batch.map(|_| size.unwrap_or(1) as i64);
    let packed = param.ty.packed.iter().map(|&dim| dim as i64);
    axis.into_iter()
        .chain(own.iter().copied())
        .chain(packed)
        .collect()
}
