//! The static description of a callable, which the attribute writes in const context.

use crate::check::{is_operand, is_result};

mod dim;
mod graph_mode;
mod param_type;

pub use dim::{Dim, DimOp};
pub use graph_mode::{GraphCacheMax, GraphMode};
pub use param_type::{BufferType, Kind, Length, ParamType, StaticType};

/// Where a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Platform {
    /// The host.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl Platform {
    /// JAX's name of the platform, as registration wants it.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Cpu => "cpu",
            Platform::Cuda => "CUDA",
        }
    }

    /// The other one.
    pub(crate) const fn other(self) -> Platform {
        match self {
            Platform::Cpu => Platform::Cuda,
            Platform::Cuda => Platform::Cpu,
        }
    }
}

/// A parameter of a callable.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name in Rust, without `r#`.
    pub name: &'static str,
    /// What its type says.
    pub ty: ParamType,
    /// Named in `in_out`.
    pub in_out: bool,
    /// Its dimensions, one expression for each axis, if they were declared.
    pub dims: Option<&'static [Dim]>,
}

impl Param {
    /// One that is neither an in-out nor has declared dimensions.
    pub const fn new(name: &'static str, ty: ParamType) -> Param {
        Param {
            name,
            ty,
            in_out: false,
            dims: None,
        }
    }

    /// The same, named in `in_out`.
    pub const fn in_out(mut self) -> Param {
        self.in_out = true;
        self
    }

    /// The same with dimensions.
    pub const fn dims(mut self, dims: &'static [Dim]) -> Param {
        self.dims = Some(dims);
        self
    }

    /// The same with dimensions if it is an array that the body writes.
    pub const fn output_dims(self, dims: &'static [Dim]) -> Param {
        match self.ty.kind {
            Kind::ArrayMut => self.dims(dims),
            _ => self,
        }
    }
}

/// A module of kernels that a callable names.
#[derive(Debug)]
pub struct ModuleUse {
    /// Its path, as written.
    pub path: &'static str,
    /// Its path from the crate's root, which tells it from all others.
    pub id: &'static str,
}

/// A callable on one platform, as the attribute describes it.
#[derive(Debug)]
pub struct Callable {
    /// The target's name within its crate.
    pub name: &'static str,
    /// `module_path!()` of the function; its first segment is the crate.
    pub module: &'static str,
    /// Source file of the function.
    pub file: &'static str,
    /// Line of the function.
    pub line: u32,
    /// The function's doc comment.
    pub doc: &'static str,
    /// The parameters in order.
    pub params: &'static [Param],
    /// The named dimensions.
    pub dim_names: &'static [&'static str],
    /// `vmap_method`, none for no batching.
    pub vmap_method: Option<&'static str>,
    /// `batch_dims`.
    pub batch_dims: &'static [&'static str],
    /// `has_side_effect`.
    pub has_side_effect: bool,
    /// `vjp`: the description of that callable. A function, for two callables may name
    /// each other.
    pub vjp: Option<fn() -> &'static Callable>,
    /// `graph_mode`.
    pub graph_mode: GraphMode,
    /// `stage_in`, none for all.
    pub stage_in: Option<&'static [&'static str]>,
    /// `stage_out`, none for all.
    pub stage_out: Option<&'static [&'static str]>,
    /// `graph_cache_max`.
    pub graph_cache_max: GraphCacheMax,
    /// `modules`, none for all of the crate's.
    pub modules: Option<&'static [ModuleUse]>,
    /// `preload`.
    pub preload: &'static str,
    /// `state`, as written.
    pub state: Option<&'static str>,
}

impl Callable {
    /// What the attribute says if it says nothing, of a function without parameters.
    pub const DEFAULT: Callable = Callable {
        name: "",
        module: "",
        file: "",
        line: 0,
        doc: "",
        params: &[],
        dim_names: &[],
        vmap_method: Some("broadcast_all"),
        batch_dims: &[],
        has_side_effect: false,
        vjp: None,
        graph_mode: GraphMode::Jax,
        stage_in: None,
        stage_out: None,
        graph_cache_max: GraphCacheMax::Default,
        modules: None,
        preload: "CurrentDevice",
        state: None,
    };

    /// The crate that the function is in.
    pub fn crate_name(&self) -> &'static str {
        self.module.split("::").next().unwrap_or(self.module)
    }

    /// The platform: that of the arrays, of which there is at least one.
    pub const fn platform(&self) -> Platform {
        let mut i = 0;
        while i < self.params.len() {
            if let Some(platform) = self.params[i].ty.platform {
                return platform;
            }
            i += 1;
        }
        Platform::Cpu
    }

    /// The operands: inputs and in-outs, each with its position in `params`.
    pub fn operands(&self) -> impl Iterator<Item = (usize, &'static Param)> {
        self.params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.ty.kind == Kind::Array || (p.ty.kind == Kind::ArrayMut && p.in_out))
    }

    /// The results: in-outs and outputs, each with its position in `params`.
    pub fn results(&self) -> impl Iterator<Item = (usize, &'static Param)> {
        self.params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.ty.kind == Kind::ArrayMut)
    }

    /// The hidden results, each with its position in `params`.
    pub fn scratch(&self) -> impl Iterator<Item = (usize, &'static Param)> {
        self.params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.ty.kind == Kind::Scratch)
    }

    /// The results, then the hidden ones, as in a call frame.
    pub(crate) fn all_results(&self) -> impl Iterator<Item = (usize, &'static Param)> {
        self.results().chain(self.scratch())
    }

    /// For each of [`Callable::all_results`], the operand that it is an in-out of.
    pub(crate) fn in_outs(&self) -> impl Iterator<Item = Option<usize>> {
        let mut operands = 0;
        let params = self.params.iter();
        let results = params.filter_map(move |param| {
            let operand = operands;
            operands += usize::from(is_operand(param));
            is_result(param).then_some(param.in_out.then_some(operand))
        });
        results.chain(self.scratch().map(|_| None))
    }

    /// The static attributes, each with its position in `params`.
    pub fn statics(&self) -> impl Iterator<Item = (usize, &'static Param)> {
        self.params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.ty.kind == Kind::Static)
    }
}
