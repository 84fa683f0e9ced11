//! The static description of a callable, which the attribute writes in const context.

use crate::check::{is_operand, is_result};
use crate::dtype::DataType;

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

/// What a parameter's type makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `&cpu::Context` or `&cuda::Context`.
    Context,
    /// `Array<T, N>`: an operand.
    Array,
    /// `ArrayMut<T, N>`: a result, and an operand as well if it is an in-out.
    ArrayMut,
    /// `Scratch<T, N>`: a result that only the body sees.
    Scratch,
    /// A static attribute.
    Static,
    /// `&State<S>`.
    State,
    /// `&PerDevice<S>`.
    PerDevice,
}

/// How many values a static attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One value.
    One,
    /// `&[T]`.
    Slice,
    /// `[T; K]`.
    Fixed(usize),
}

/// The type of a static attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticType {
    /// Numbers and booleans.
    Number(DataType, Length),
    /// `&str`.
    Str,
}

/// What is known of a parameter from its type alone.
#[derive(Clone, Copy, Debug)]
pub struct ParamType {
    /// What the type makes of the parameter.
    pub kind: Kind,
    /// The platform the type belongs to, none for static attributes and state.
    pub platform: Option<Platform>,
    /// The element type of an array.
    pub dtype: Option<DataType>,
    /// The number of an array's own dimensions.
    pub rank: usize,
    /// The packed dimensions that follow them.
    pub packed: &'static [usize],
    /// What a call's buffer is compared with.
    pub buffer: BufferType,
    /// The type of a static attribute.
    pub value: Option<StaticType>,
}

/// An array type as plain numbers, small, for it is read in every call.
#[derive(Clone, Copy, Debug)]
pub struct BufferType {
    /// XLA's number of the element type.
    pub dtype: i32,
    /// Bytes of a scalar.
    pub size: u16,
    /// Bytes that the data must be aligned to, less one.
    pub align_mask: u16,
    /// Dimensions, the packed ones included.
    pub rank: u16,
    /// Packed dimensions.
    pub packed: u16,
}

impl BufferType {
    pub(crate) const fn new(
        dtype: DataType,
        rank: usize,
        packed: &[usize],
        align_mask: u16,
    ) -> BufferType {
        BufferType {
            dtype: dtype as i32,
            size: dtype.size() as u16,
            align_mask,
            rank: (rank + packed.len()) as u16,
            packed: packed.len() as u16,
        }
    }

    /// For parameters that have no buffer.
    pub const NONE: BufferType = BufferType {
        dtype: 0,
        size: 0,
        align_mask: 0,
        rank: 0,
        packed: 0,
    };
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

/// An expression for a dimension.
#[derive(Debug)]
pub enum Dim {
    /// A number.
    Const(i64),
    /// A named dimension, by position in [`Callable::dim_names`].
    Name(usize),
    /// An axis of an array parameter, by the position of the parameter.
    Axis(usize, usize),
    /// An integer static attribute, by the position of the parameter.
    Scalar(usize),
    /// Arithmetic.
    Op(DimOp, &'static Dim, &'static Dim),
}

/// Arithmetic on dimensions: 64-bit signed, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`, rounded down
    Div,
    /// `a % b`, with the sign of `b`
    Rem,
    /// `a.div_ceil(b)`
    DivCeil,
    /// `a.min(b)`
    Min,
    /// `a.max(b)`
    Max,
}

impl DimOp {
    /// Its name in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            DimOp::Add => "+",
            DimOp::Sub => "-",
            DimOp::Mul => "*",
            DimOp::Div => "/",
            DimOp::Rem => "%",
            DimOp::DivCeil => "div_ceil",
            DimOp::Min => "min",
            DimOp::Max => "max",
        }
    }
}

/// How CUDA graphs are used by a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMode {
    /// The body runs on XLA's stream at every call.
    None,
    /// XLA may capture the body into its own command buffers.
    Jax,
    /// A graph of our own, updated when buffers move.
    Warp,
    /// A graph of our own over staging buffers, with the copies as graph nodes.
    WarpStaged,
    /// A graph of our own over staging buffers, with the copies around it.
    WarpStagedEx,
}

impl GraphMode {
    /// Whether the graphs are our own, not XLA's.
    pub const fn is_own(self) -> bool {
        match self {
            GraphMode::None | GraphMode::Jax => false,
            GraphMode::Warp | GraphMode::WarpStaged | GraphMode::WarpStagedEx => true,
        }
    }

    /// Its name in the attribute and the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            GraphMode::None => "None",
            GraphMode::Jax => "Jax",
            GraphMode::Warp => "Warp",
            GraphMode::WarpStaged => "WarpStaged",
            GraphMode::WarpStagedEx => "WarpStagedEx",
        }
    }
}

/// How many graphs a target keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphCacheMax {
    /// The runtime's default, looked up at use.
    Default,
    /// This many.
    Limit(u64),
    /// No limit.
    Unlimited,
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
