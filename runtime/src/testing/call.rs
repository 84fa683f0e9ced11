//! Calls: what they are given.

use super::value::{IntoStatic, Spec, sealed::Sealed};
use super::{Damage, Target};
use crate::element::Element;
use crate::ffi::host::{MINOR_VERSIONS, Settings};
use crate::ffi::host_frame::AttrSpec;
use crate::ffi::host_memory::Memory;
use crate::signature::{Kind, Param};
use std::collections::HashMap;
use std::fmt;

/// A call of a target, as XLA would make it: its arguments by name, and what the host is like.
///
/// The methods that name a parameter panic if the callable has none of that name and kind:
/// a test that is wrong itself should say so.
#[must_use = "a call does nothing before `run`"]
#[derive(Clone)]
pub struct Call {
    pub(super) target: Target,
    pub(super) values: HashMap<&'static str, AttrSpec>,
    pub(super) inputs: HashMap<&'static str, Input>,
    pub(super) output_dims: HashMap<&'static str, Vec<i64>>,
    /// The sizes of the batch axes.
    pub(super) batch: Vec<usize>,
    pub(super) alias: bool,
    pub(super) host: Settings,
    pub(super) damages: Vec<Damage>,
}

#[derive(Clone)]
pub(super) struct Input {
    pub(super) axes: Axes,
    /// Without batch axes and packed dimensions.
    pub(super) dims: Vec<i64>,
    /// None if only the shape was given.
    pub(super) memory: Option<Memory>,
}

/// The batch axes of an input.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Axes {
    /// For each whether it is the batch's; else its size is 1.
    Some(Vec<bool>),
    /// It has none, whatever the batch.
    None,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("target", &self.target.path())
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

impl Call {
    pub(super) fn new(target: Target) -> Call {
        Call {
            target,
            values: HashMap::new(),
            inputs: HashMap::new(),
            output_dims: HashMap::new(),
            batch: Vec::new(),
            alias: true,
            host: Settings {
                api_version: 3,
                num_threads: 2,
                device_ordinal: 0,
                run_id: 1,
            },
            damages: Vec::new(),
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
    pub fn input<T: Element>(self, name: &str, shape: impl AsRef<[usize]>, data: &[T]) -> Call {
        let axes = vec![false; self.batch.len()];
        self.any_input(name, shape.as_ref(), data, Axes::Some(axes))
    }

    /// Gives an input or in-out that `jax.vmap` has batched: `data` holds as many arrays of
    /// this shape as the batch has elements, one after the other.
    #[track_caller]
    pub fn batched_input<T: Element>(
        self,
        name: &str,
        shape: impl AsRef<[usize]>,
        data: &[T],
    ) -> Call {
        let axes = self.all_axes();
        self.any_input(name, shape.as_ref(), data, axes)
    }

    /// Gives an input in a nested batch: for each batch axis whether it has that. `data` holds an
    /// array of this shape for each index of the axes that it has.
    ///
    /// Axes that an input does not have are of size 1 in its buffer. Without any entry, `axes`
    /// stands for an input that has no batch axes at all, as there are in sharded calls.
    #[track_caller]
    pub fn input_along<T: Element>(
        self,
        name: &str,
        axes: impl AsRef<[bool]>,
        shape: impl AsRef<[usize]>,
        data: &[T],
    ) -> Call {
        let axes = match axes.as_ref() {
            [] => Axes::None,
            axes => {
                let rank = self.batch.len();
                assert_eq!(axes.len(), rank, "`{name}`: one entry for each batch axis");
                Axes::Some(axes.to_vec())
            }
        };
        self.any_input(name, shape.as_ref(), data, axes)
    }

    /// Gives the shape of an input or in-out alone, for a call site that is executed with arrays of
    /// the caller's.
    #[track_caller]
    pub fn input_shape(self, name: &str, shape: impl AsRef<[usize]>) -> Call {
        let axes = vec![false; self.batch.len()];
        self.shape(name, shape.as_ref(), Axes::Some(axes))
    }

    /// The same for an input that `jax.vmap` has batched.
    #[track_caller]
    pub fn batched_input_shape(self, name: &str, shape: impl AsRef<[usize]>) -> Call {
        let axes = self.all_axes();
        self.shape(name, shape.as_ref(), axes)
    }

    /// Makes it a call for a whole batch, as `jax.vmap` does; before inputs are given. In-outs
    /// must be batched; results are.
    pub fn batch_size(self, size: usize) -> Call {
        self.batch_sizes([size])
    }

    /// The same for `jax.vmap`s of each other: the sizes of their batches, outermost first.
    ///
    /// # Panics
    /// If inputs were given before.
    #[track_caller]
    pub fn batch_sizes(mut self, sizes: impl AsRef<[usize]>) -> Call {
        assert!(
            self.inputs.is_empty(),
            "the batch comes before the inputs, which it changes"
        );
        self.batch = sizes.as_ref().to_vec();
        self
    }

    /// Chooses the shape of an output for this call, as `output_dims=` does in Python.
    /// Without it the shapes follow the callable's rules.
    #[track_caller]
    pub fn output_dims(mut self, name: &str, shape: impl AsRef<[usize]>) -> Call {
        let param = self.param(name, |p| p.ty.kind == Kind::ArrayMut && !p.in_out);
        self.output_dims.insert(param.name, signed(shape.as_ref()));
        self
    }

    /// Whether an in-out's operand and result are one buffer, as JAX asks of XLA (the
    /// default), or two.
    pub fn alias_in_outs(mut self, alias: bool) -> Call {
        self.alias = alias;
        self
    }

    /// Chooses the version of XLA's FFI API, 0.`minor` with `minor` from 1 to 5. Each has another
    /// table of functions. The default is 0.3.
    ///
    /// # Panics
    /// If there is no such version.
    #[track_caller]
    pub fn api_version(mut self, minor: i32) -> Call {
        assert!(
            MINOR_VERSIONS.contains(&minor),
            "there is no XLA FFI API 0.{minor} here"
        );
        self.host.api_version = minor;
        self
    }

    /// Chooses the size of XLA's thread pool, 2 by default.
    pub fn num_threads(mut self, num_threads: usize) -> Call {
        self.host.num_threads = num_threads as i64;
        self
    }

    /// Chooses the device, 0 by default, for [`run`](Call::run): the number that
    /// [`cpu::Context`](crate::cpu::Context) has.
    pub fn device_ordinal(mut self, device_ordinal: i32) -> Call {
        self.host.device_ordinal = device_ordinal;
        self
    }

    /// Chooses the number of the launch, 1 by default, that [`cpu::Context`](crate::cpu::Context)
    /// has.
    pub fn run_id(mut self, run_id: i64) -> Call {
        self.host.run_id = run_id;
        self
    }

    #[track_caller]
    fn all_axes(&self) -> Axes {
        assert!(!self.batch.is_empty(), "call `batch_size` first");
        Axes::Some(vec![true; self.batch.len()])
    }

    #[track_caller]
    fn shape(mut self, name: &str, shape: &[usize], axes: Axes) -> Call {
        let param = self.operand(name);
        assert!(param.ty.rank == shape.len(), "`{name}` has another rank");
        let input = Input {
            axes,
            dims: signed(shape),
            memory: None,
        };
        self.inputs.insert(param.name, input);
        self
    }

    #[track_caller]
    fn any_input<T: Element>(self, name: &str, shape: &[usize], data: &[T], axes: Axes) -> Call {
        let param = self.operand(name);
        let copies = self.axis_sizes(&axes).iter().product::<usize>();
        assert_eq!(
            shape.iter().product::<usize>() * copies,
            data.len(),
            "the shape of `{name}` has another number of elements than its data"
        );
        assert!(
            param.ty.dtype == Some(T::DTYPE) && param.ty.packed == T::PACKED,
            "`{name}` has another element type"
        );
        let mut call = self.shape(name, shape, axes);
        let input = call.inputs.get_mut(param.name).expect("it was given");
        input.memory = Some(Memory::of(data));
        call
    }

    /// The leading dimensions of an input.
    pub(super) fn axis_sizes(&self, axes: &Axes) -> Vec<usize> {
        match axes {
            Axes::Some(axes) => {
                let pairs = axes.iter().zip(&self.batch);
                pairs
                    .map(|(&has, &size)| if has { size } else { 1 })
                    .collect()
            }
            Axes::None => Vec::new(),
        }
    }

    #[track_caller]
    pub(super) fn operand(&self, name: &str) -> &'static Param {
        self.param(name, |p| {
            p.ty.kind == Kind::Array || (p.ty.kind == Kind::ArrayMut && p.in_out)
        })
    }

    #[track_caller]
    fn param(&self, name: &str, fits: impl Fn(&Param) -> bool) -> &'static Param {
        let callable = self.target.callable;
        let param = callable.params.iter().find(|p| p.name == name && fits(p));
        param.unwrap_or_else(|| panic!("`{}` has no such parameter `{name}`", callable.name))
    }

    #[track_caller]
    pub(super) fn given(&self, param: &Param) -> &Input {
        self.inputs
            .get(param.name)
            .unwrap_or_else(|| panic!("the input `{}` is not given", param.name))
    }
}

fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&dim| dim as i64).collect()
}
