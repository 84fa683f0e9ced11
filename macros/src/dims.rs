//! Expressions for dimensions: `n`, `2 * n + 1`, `n.div_ceil(4)`, `a.dim(0)`.

use crate::diag::{self, At};
use crate::values::bare;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{BinOp, Expr, ExprLit, Ident, Lit, Token};

/// The dimensions of one array, as written.
#[derive(Clone)]
pub(crate) struct Dims {
    pub(crate) at: At,
    pub(crate) dims: Vec<DimExpr>,
}

/// A dimension, as written.
#[derive(Clone)]
pub(crate) struct DimExpr {
    pub(crate) at: At,
    pub(crate) kind: DimExprKind,
}

/// What a dimension is.
#[derive(Clone)]
pub(crate) enum DimExprKind {
    /// A number.
    Int(i64),
    /// A named dimension or an integer parameter.
    Name(String),
    /// An axis of an array parameter.
    Axis(String, usize),
    /// Arithmetic: a variant of the runtime's `DimOp`, and what it works on.
    Op(&'static str, Box<[DimExpr; 2]>),
}

impl Dims {
    /// From what stands in `#[dims(...)]`.
    pub(crate) fn of_list(tokens: &TokenStream) -> syn::Result<Dims> {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated
            .parse2(tokens.clone())
            .map_err(|error| syn::Error::new(error.span(), diag::dims_syntax("this")))?;
        Dims::of(At::of(tokens), list.iter())
    }

    /// From a value: a tuple, an array, or one dimension.
    pub(crate) fn of_value(expr: &Expr) -> syn::Result<Dims> {
        let at = At::of(expr);
        match bare(expr) {
            Expr::Tuple(tuple) => Dims::of(at, tuple.elems.iter()),
            Expr::Array(array) => Dims::of(at, array.elems.iter()),
            single => Dims::of(at, [single].into_iter()),
        }
    }

    fn of<'a>(at: At, exprs: impl Iterator<Item = &'a Expr>) -> syn::Result<Dims> {
        let mut dims = Vec::new();
        let mut errors: Option<syn::Error> = None;
        for expr in exprs {
            match (DimExpr::of(expr), &mut errors) {
                (Ok(dim), _) => dims.push(dim),
                (Err(error), Some(errors)) => errors.combine(error),
                (Err(error), none) => *none = Some(error),
            }
        }
        errors.map_or(Ok(Dims { at, dims }), Err)
    }
}

impl DimExpr {
    fn of(expr: &Expr) -> syn::Result<DimExpr> {
        let at = At::of(expr);
        let kind = match bare(expr) {
            Expr::Lit(ExprLit {
                lit: Lit::Int(int), ..
            }) => DimExprKind::Int(integer(int)?),
            Expr::Path(path) => match path.path.get_ident() {
                Some(ident) => DimExprKind::Name(ident.unraw().to_string()),
                None => return Err(unsupported(expr)),
            },
            Expr::Binary(binary) => {
                let op = match binary.op {
                    BinOp::Add(_) => "Add",
                    BinOp::Sub(_) => "Sub",
                    BinOp::Mul(_) => "Mul",
                    BinOp::Div(_) => "Div",
                    BinOp::Rem(_) => "Rem",
                    other => return Err(unsupported(&other)),
                };
                DimExprKind::op(op, &binary.left, &binary.right)?
            }
            Expr::MethodCall(call) => {
                let argument = match (call.args.first(), call.args.len(), &call.turbofish) {
                    (Some(argument), 1, None) => argument,
                    _ => return Err(unsupported(&call.method)),
                };
                if call.method == "dim" {
                    DimExprKind::axis(&call.receiver, argument)?
                } else {
                    let op = match &*call.method.to_string() {
                        "div_ceil" => "DivCeil",
                        "min" => "Min",
                        "max" => "Max",
                        _ => return Err(unsupported(&call.method)),
                    };
                    DimExprKind::op(op, &call.receiver, argument)?
                }
            }
            _ => return Err(unsupported(expr)),
        };
        Ok(DimExpr { at, kind })
    }
}

impl DimExprKind {
    fn op(op: &'static str, left: &Expr, right: &Expr) -> syn::Result<DimExprKind> {
        let args = match (DimExpr::of(left), DimExpr::of(right)) {
            (Ok(left), Ok(right)) => [left, right],
            (Err(mut left), Err(right)) => {
                left.combine(right);
                return Err(left);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        Ok(DimExprKind::Op(op, Box::new(args)))
    }

    fn axis(array: &Expr, axis: &Expr) -> syn::Result<DimExprKind> {
        let name: Option<&Ident> = match bare(array) {
            Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let name = name.ok_or_else(|| unsupported(array))?;
        match bare(axis) {
            Expr::Lit(ExprLit {
                lit: Lit::Int(int), ..
            }) => {
                let axis = usize::try_from(integer(int)?).map_err(|_| unsupported(axis))?;
                Ok(DimExprKind::Axis(name.unraw().to_string(), axis))
            }
            other => Err(unsupported(other)),
        }
    }
}

fn integer(int: &syn::LitInt) -> syn::Result<i64> {
    // A suffix is no part of the value, though `2n` looks like `2 * n`. `output_dims = -1` is one literal.
    let value = int.base10_parse().ok();
    let value = value.filter(|value| *value >= 0 && int.suffix().is_empty());
    value.ok_or_else(|| unsupported(int))
}

fn unsupported(tokens: &impl ToTokens) -> syn::Error {
    let text = crate::values::text_of(tokens);
    diag::dims_syntax(format!("`{text}`")).at(tokens)
}
