//! A callable with its names resolved, for the checks and the expansion.

use crate::ctx::Ctx;
use crate::diag::At;
use crate::state;
use crate::types::{self, Guess, Role};
use crate::values::{CacheMax, Choice, Count, GraphMode, Named};
use syn::{Expr, Ident, Path, Type, Visibility};

/// A callable. Parameters and dimensions are known by their positions.
pub(crate) struct Callable {
    pub(crate) ctx: Ctx,
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) name: Named,
    pub(crate) doc: String,
    pub(crate) result: Type,
    pub(crate) params: Vec<Param>,
    pub(crate) dim_names: Vec<String>,
    pub(crate) num_outputs: Option<Count>,
    pub(crate) vmap_method: Option<&'static str>,
    pub(crate) batch_dims: Vec<Named>,
    pub(crate) has_side_effect: bool,
    pub(crate) vjp: Option<Path>,
    pub(crate) graph_mode: Option<Choice<GraphMode>>,
    /// None for all arrays; an empty list is for none of them.
    pub(crate) stage_in: Option<Vec<Reference>>,
    pub(crate) stage_out: Option<Vec<Reference>>,
    pub(crate) graph_cache_max: Option<CacheMax>,
    pub(crate) modules: Vec<Path>,
    pub(crate) preload: &'static str,
    pub(crate) state: Option<Expr>,
    pub(crate) certain: Certain,
}

/// What was read in full. Rules on what was not are left out: they would report mere
/// consequences of a mistake.
#[derive(Clone, Copy)]
pub(crate) struct Certain {
    /// All parameters.
    pub(crate) params: bool,
    /// Which of them are in-outs.
    pub(crate) in_outs: bool,
    /// All dimensions.
    pub(crate) dims: bool,
    /// The constructor of the state.
    pub(crate) state: bool,
    /// What is returned.
    pub(crate) result: bool,
}

/// A parameter.
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) ident: Ident,
    pub(crate) at: At,
    pub(crate) ty: Type,
    pub(crate) guess: Guess,
    /// Its traits are there to be asked.
    pub(crate) has_traits: bool,
    /// Where `in_out` names it.
    pub(crate) in_out: Option<At>,
    pub(crate) dims: Option<DimList>,
}

/// The dimensions of a parameter.
pub(crate) struct DimList {
    pub(crate) at: At,
    pub(crate) dims: Vec<Dim>,
    pub(crate) origin: Origin,
}

/// What gave a parameter its dimensions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `#[dims(...)]`
    Param,
    /// `output_dims(y = ...)`
    Named,
    /// `output_dims = ...`, on a parameter that may turn out to be no output.
    All,
}

/// A dimension.
pub(crate) struct Dim {
    pub(crate) at: At,
    pub(crate) kind: DimKind,
}

/// What a dimension is.
pub(crate) enum DimKind {
    Const(i64),
    /// A position in [`Callable::dim_names`].
    Name(usize),
    /// An axis of a parameter.
    Axis(usize, usize),
    /// The value of a parameter.
    Scalar(usize),
    /// A variant of the runtime's `DimOp`, and what it works on.
    Op(&'static str, Box<[Dim; 2]>),
}

/// A parameter that a key names.
pub(crate) struct Reference {
    pub(crate) param: usize,
    pub(crate) at: At,
}

impl Callable {
    /// The first type that the module of the function's name would hide.
    pub(crate) fn hides(&self) -> Option<&Type> {
        let mut types = self.params.iter().map(|param| &param.ty);
        let is_hidden = |ty: &&Type| types::begins_with(ty, &self.ident);
        types.find(|ty| !types::is_primitive(&self.ident) && is_hidden(ty))
    }

    /// Whether the attribute itself uses a parameter's value.
    pub(crate) fn uses(&self, ident: &Ident) -> bool {
        let is_it = |i: usize| self.params[i].ident == *ident;
        let mut used = state::uses(self).iter().any(|(i, _)| is_it(*i));
        for list in self.params.iter().filter_map(|param| param.dims.as_ref()) {
            list.visit(|dim, _, _| {
                used |= matches!(dim.kind, DimKind::Scalar(i) | DimKind::Axis(i, _) if is_it(i));
            });
        }
        used
    }
}

/// Questions about a parameter; none if only its type's traits know.
impl Param {
    fn role(&self) -> Role {
        match (self.guess.role, self.in_out) {
            // The checks ask whether it is one.
            (Role::Unknown, Some(_)) => Role::ArrayMut,
            (role, _) => role,
        }
    }

    /// Whether it is an array that the body reads: an input or an in-out.
    pub(crate) fn is_operand(&self) -> Option<bool> {
        match self.role() {
            Role::Array => Some(true),
            Role::ArrayMut => Some(self.in_out.is_some()),
            Role::Unknown => None,
            _ => Some(false),
        }
    }

    /// Whether it is an array that the body writes: an output or an in-out.
    pub(crate) fn is_result(&self) -> Option<bool> {
        match self.role() {
            Role::ArrayMut => Some(true),
            Role::Unknown => None,
            _ => Some(false),
        }
    }

    /// Whether it is written only.
    pub(crate) fn is_output(&self) -> Option<bool> {
        self.is_result()
            .map(|result| result && self.in_out.is_none())
    }

    /// Whether Python passes a value for it.
    pub(crate) fn is_input(&self) -> Option<bool> {
        match self.role() {
            Role::Integer | Role::Static => Some(true),
            _ => self.is_operand(),
        }
    }

    /// Whether it is an array of any kind.
    pub(crate) fn is_array(&self) -> Option<bool> {
        match self.role() {
            Role::Array | Role::ArrayMut | Role::Scratch => Some(true),
            Role::Unknown => None,
            _ => Some(false),
        }
    }
}

impl DimList {
    /// Calls `visit` on all dimensions and what they are made of, with the axis and
    /// whether it is part of an expression.
    pub(crate) fn visit<'a>(&'a self, mut visit: impl FnMut(&'a Dim, usize, bool)) {
        fn inner<'a>(
            dim: &'a Dim,
            axis: usize,
            inside: bool,
            visit: &mut impl FnMut(&'a Dim, usize, bool),
        ) {
            visit(dim, axis, inside);
            if let DimKind::Op(_, args) = &dim.kind {
                for arg in args.iter() {
                    inner(arg, axis, true, visit);
                }
            }
        }
        for (axis, dim) in self.dims.iter().enumerate() {
            inner(dim, axis, false, &mut visit);
        }
    }
}
