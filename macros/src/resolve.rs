//! From what is written to the model: finds what the names mean.

use crate::args::Args;
use crate::ctx::Ctx;
use crate::diag::{self, At, Errors};
use crate::dims::{DimExpr, DimExprKind, Dims};
use crate::model::{Callable, Certain, Dim, DimKind, DimList, Origin, Param, Reference};
use crate::parse::{Function, RawParams};
use crate::types;
use crate::values::{Choice, Constructor, Named, Names, OutputDims, Paths, Switch, VmapMethod};
use syn::ext::IdentExt;

/// Builds the model; what cannot be resolved is reported and left out.
pub(crate) fn resolve(
    args: Args,
    function: &Function,
    raw: RawParams,
    errors: &mut Errors,
) -> Callable {
    let read = !args.incomplete && !raw.incomplete;
    let mut certain = Certain {
        params: read,
        in_outs: read && !args.in_out.is_wrong(),
        dims: read && !raw.dims_incomplete && !args.output_dims.is_wrong(),
        state: read && !args.state.is_wrong(),
        result: true,
    };
    let ident = function.sig.ident.clone();
    let name = args.name.get(errors).unwrap_or_else(|| Named {
        text: ident.unraw().to_string(),
        at: At::of(&ident),
    });

    let mut dims = Vec::new();
    let mut params = Vec::new();
    for param in raw.params {
        dims.push(param.dims.map(|dims| (dims, Origin::Param)));
        params.push(Param {
            at: At::of(&param.ident),
            guess: types::guess(&param.ty),
            has_traits: param.is_spelt_right && function.generic().is_none(),
            name: param.name,
            ident: param.ident,
            ty: param.ty,
            in_out: None,
            dims: None,
        });
    }

    let in_outs = args.in_out.get(errors);
    for reference in references("in_out", in_outs, &params, &mut certain.in_outs, errors) {
        params[reference.param].in_out = Some(reference.at);
    }
    let (stage_in, stage_out) = (args.stage_in.get(errors), args.stage_out.get(errors));
    let mut staged = |key, names: Option<Names>| {
        names.map(|names| references(key, Some(names), &params, &mut true, errors))
    };
    let stage_in = staged("stage_in", stage_in);
    let stage_out = staged("stage_out", stage_out);

    if let Some(rule) = args.output_dims.get(errors) {
        output_dims(rule, &params, &mut dims, errors);
    }
    let mut scope = Scope {
        params: &params,
        dim_names: Vec::new(),
        complete: true,
        errors,
    };
    let dims: Vec<_> = dims
        .into_iter()
        .map(|dims| Some(scope.list(dims?)))
        .collect();
    let Scope {
        dim_names,
        complete,
        ..
    } = scope;
    certain.dims &= complete;
    for (param, dims) in params.iter_mut().zip(dims) {
        param.dims = dims;
    }

    let before = errors.count();
    let result = function.result(errors);
    certain.result = errors.count() == before;

    Callable {
        ctx: Ctx::new(args.krate.get(errors)),
        vis: function.vis.clone(),
        doc: function.doc(),
        result,
        num_outputs: args.num_outputs.get(errors),
        vmap_method: vmap_method(args.vmap_method.get(errors)),
        batch_dims: distinct("batch_dims", args.batch_dims.get(errors), errors),
        has_side_effect: args
            .has_side_effect
            .get(errors)
            .is_some_and(|Switch(on)| on),
        vjp: args.vjp.get(errors),
        graph_mode: args.graph_mode.get(errors),
        graph_cache_max: args.graph_cache_max.get(errors),
        modules: args
            .modules
            .get(errors)
            .map_or_else(Vec::new, |Paths(paths)| paths),
        preload: args
            .preload
            .get(errors)
            .map_or("CurrentDevice", |choice| choice.word),
        state: args.state.get(errors).map(|Constructor(call)| call),
        ident,
        name,
        params,
        dim_names,
        stage_in,
        stage_out,
        certain,
    }
}

fn vmap_method(choice: Option<Choice<VmapMethod>>) -> Option<&'static str> {
    let word = choice.map_or("broadcast_all", |choice| choice.word);
    (word != "None").then_some(word)
}

/// The names of a key, each once.
fn distinct(key: &str, names: Option<Names>, errors: &mut Errors) -> Vec<Named> {
    let mut distinct: Vec<Named> = Vec::new();
    for name in names.unwrap_or_default().0 {
        if distinct.iter().any(|other| other.text == name.text) {
            errors.push(name.at, diag::duplicate_name(key, name.text));
        } else {
            distinct.push(name);
        }
    }
    distinct
}

/// The parameters that a key names.
fn references(
    key: &str,
    names: Option<Names>,
    params: &[Param],
    complete: &mut bool,
    errors: &mut Errors,
) -> Vec<Reference> {
    let mut references = Vec::new();
    for name in distinct(key, names, errors) {
        match position(params, &name.text) {
            Some(param) => references.push(Reference { param, at: name.at }),
            None => {
                *complete = false;
                let (hint, names) = suggest(&name.text, params, |p| p.is_array() != Some(false));
                errors.push(name.at, diag::unknown_name(key, name.text, hint, names));
            }
        }
    }
    references
}

fn position(params: &[Param], name: &str) -> Option<usize> {
    params.iter().position(|param| param.name == name)
}

/// A near name and the list of all that are meant.
fn suggest(name: &str, params: &[Param], is_meant: impl Fn(&Param) -> bool) -> (String, String) {
    let meant = || {
        params
            .iter()
            .filter(|param| is_meant(param))
            .map(|param| &*param.name)
    };
    (diag::hint(name, meant()), diag::list(meant()))
}

/// Gives the dimensions of `output_dims` to the outputs.
fn output_dims(
    rule: OutputDims,
    params: &[Param],
    dims: &mut [Option<(Dims, Origin)>],
    errors: &mut Errors,
) {
    match rule {
        OutputDims::Named(pairs) => {
            for (name, rule) in pairs {
                match position(params, &name.text) {
                    Some(param) if params[param].is_output() != Some(false) => {
                        let taken = &params[param].name;
                        give(
                            &mut dims[param],
                            taken,
                            name.at,
                            (rule, Origin::Named),
                            errors,
                        );
                    }
                    _ => {
                        let (hint, names) =
                            suggest(&name.text, params, |p| p.is_output() != Some(false));
                        errors.push(name.at, diag::not_an_output(name.text, hint, names));
                    }
                }
            }
        }
        OutputDims::All(rule) => {
            for (param, dims) in params.iter().zip(dims) {
                // What may turn out to be an output gets them for that case.
                if param.is_output().unwrap_or(dims.is_none()) {
                    give(
                        dims,
                        &param.name,
                        rule.at,
                        (rule.clone(), Origin::All),
                        errors,
                    );
                }
            }
        }
    }
}

/// Gives dimensions to an output that must not have any yet.
fn give(
    dims: &mut Option<(Dims, Origin)>,
    name: &str,
    at: At,
    rule: (Dims, Origin),
    errors: &mut Errors,
) {
    match dims {
        None => *dims = Some(rule),
        Some((_, Origin::Named)) => errors.push(at, diag::duplicate_name("output_dims", name)),
        Some(_) => errors.push(at, diag::two_rules(name)),
    }
}

/// What names in dimensions can mean.
struct Scope<'a> {
    params: &'a [Param],
    dim_names: Vec<String>,
    /// All names have a meaning.
    complete: bool,
    errors: &'a mut Errors,
}

impl Scope<'_> {
    fn list(&mut self, (dims, origin): (Dims, Origin)) -> DimList {
        DimList {
            at: dims.at,
            dims: dims.dims.into_iter().map(|dim| self.dim(dim)).collect(),
            origin,
        }
    }

    fn dim(&mut self, dim: DimExpr) -> Dim {
        let at = dim.at;
        let kind = match dim.kind {
            DimExprKind::Int(value) => DimKind::Const(value),
            DimExprKind::Name(name) => match position(self.params, &name) {
                Some(param) if self.params[param].is_array() == Some(true) => {
                    self.fail(at, diag::array_in_dimension(name))
                }
                Some(param) => DimKind::Scalar(param),
                None => DimKind::Name(self.name(name)),
            },
            DimExprKind::Axis(name, axis) => match position(self.params, &name) {
                Some(param) => DimKind::Axis(param, axis),
                None => {
                    let (hint, names) =
                        suggest(&name, self.params, |p| p.is_operand() != Some(false));
                    self.fail(at, diag::unknown_array(name, hint, names))
                }
            },
            DimExprKind::Op(op, args) => {
                DimKind::Op(op, Box::new((*args).map(|arg| self.dim(arg))))
            }
        };
        Dim { at, kind }
    }

    fn name(&mut self, name: String) -> usize {
        let known = self.dim_names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.dim_names.push(name);
            self.dim_names.len() - 1
        })
    }

    fn fail(&mut self, at: At, text: diag::Text) -> DimKind {
        self.complete = false;
        self.errors.push(at, text);
        DimKind::Const(1)
    }
}
