//! The values of the attribute's keys.

use crate::diag::{self, At};
use crate::dims::Dims;
use proc_macro2::TokenStream;
use quote::ToTokens;
use std::marker::PhantomData;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, Meta, Path, Token};

/// A value that reads itself. The outer error is the place of something that is not of
/// the form of such values.
pub(crate) trait Value: Sized {
    fn form(key: &str) -> String;
    fn read(key: &str, meta: &Meta) -> Result<syn::Result<Self>, TokenStream>;
}

/// The value in `key = value`.
fn value(meta: &Meta) -> Result<&Expr, TokenStream> {
    match meta {
        Meta::NameValue(pair) => Ok(bare(&pair.value)),
        other => Err(other.to_token_stream()),
    }
}

/// The values in `key = value`, `key = (a, b)`, `key = [a, b]` and `key(a, b)`.
fn values(meta: &Meta) -> Result<Vec<Expr>, TokenStream> {
    Ok(match meta {
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated)
            .map_err(|_| list.tokens.clone())?
            .into_iter()
            .collect(),
        _ => match value(meta)? {
            Expr::Tuple(tuple) => tuple.elems.iter().cloned().collect(),
            Expr::Array(array) => array.elems.iter().cloned().collect(),
            single => vec![single.clone()],
        },
    })
}

/// Without parentheses, and without the invisible groups that `macro_rules!` leaves.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => bare(&group.expr),
        Expr::Paren(paren) => bare(&paren.expr),
        other => other,
    }
}

/// Tokens as one would write them.
pub(crate) fn text_of(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    text.replace(" :: ", "::")
        .replace(":: ", "::")
        .replace(" (", "(")
        .replace(" ,", ",")
}

/// A name and where it is written.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) text: String,
    pub(crate) at: At,
}

impl Named {
    fn of_string(expr: &Expr) -> Option<Named> {
        match expr {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) if text.suffix().is_empty() => Some(Named {
                text: text.value(),
                at: At::of(text),
            }),
            _ => None,
        }
    }

    fn of_word(expr: &Expr) -> Option<Named> {
        match bare(expr) {
            Expr::Path(path) => Some(Named {
                text: syn::ext::IdentExt::unraw(path.path.get_ident()?).to_string(),
                at: At::of(path),
            }),
            other => Named::of_string(other),
        }
    }
}

impl Value for Named {
    fn form(key: &str) -> String {
        format!("a string, as in `{key} = \"saxpy\"`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Named>, TokenStream> {
        let expr = value(meta)?;
        Named::of_string(expr)
            .map(Ok)
            .ok_or_else(|| expr.to_token_stream())
    }
}

/// Names: words or strings.
#[derive(Default)]
pub(crate) struct Names(pub(crate) Vec<Named>);

impl Value for Names {
    fn form(key: &str) -> String {
        format!("names, as in `{key} = x`, `{key} = \"x\"` or `{key} = (x, y)`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Names>, TokenStream> {
        let named = |expr: &Expr| Named::of_word(expr).ok_or_else(|| expr.to_token_stream());
        let names: Result<_, _> = values(meta)?.iter().map(named).collect();
        Ok(Ok(Names(names?)))
    }
}

/// A number and where it is written.
pub(crate) struct Count {
    pub(crate) value: u64,
    pub(crate) at: At,
}

impl Count {
    fn of(expr: &Expr) -> Option<Count> {
        match expr {
            Expr::Lit(ExprLit {
                lit: Lit::Int(int), ..
            }) if int.suffix().is_empty() => Some(Count {
                value: int.base10_parse().ok()?,
                at: At::of(int),
            }),
            _ => None,
        }
    }
}

impl Value for Count {
    fn form(key: &str) -> String {
        format!("an integer, as in `{key} = 2`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Count>, TokenStream> {
        let expr = value(meta)?;
        Count::of(expr)
            .map(Ok)
            .ok_or_else(|| expr.to_token_stream())
    }
}

/// One of a set of words.
pub(crate) trait Words {
    const WORDS: &'static [&'static str];
}

pub(crate) struct GraphMode;
impl Words for GraphMode {
    const WORDS: &'static [&'static str] = &["None", "Jax", "Warp", "WarpStaged", "WarpStagedEx"];
}

pub(crate) struct VmapMethod;
impl Words for VmapMethod {
    const WORDS: &'static [&'static str] = &[
        "broadcast_all",
        "expand_dims",
        "sequential",
        "sequential_unrolled",
        "legacy_vectorized",
        "None",
    ];
}

pub(crate) struct Preload;
impl Words for Preload {
    const WORDS: &'static [&'static str] = &["CurrentDevice", "AllDevices", "None"];
}

/// One of the words of `W`: bare, at the end of a path, or as a string.
pub(crate) struct Choice<W> {
    pub(crate) word: &'static str,
    pub(crate) at: At,
    words: PhantomData<W>,
}

impl<W: Words> Value for Choice<W> {
    fn form(_: &str) -> String {
        format!("one of {}", diag::list(W::WORDS.iter().copied()))
    }

    fn read(key: &str, meta: &Meta) -> Result<syn::Result<Choice<W>>, TokenStream> {
        let expr = value(meta)?;
        let given = match expr {
            Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            other => Named::of_string(other).map(|name| name.text),
        };
        let given = given.ok_or_else(|| expr.to_token_stream())?;
        Ok(match W::WORDS.iter().find(|word| **word == given) {
            Some(word) => Ok(Choice {
                word,
                at: At::of(expr),
                words: PhantomData,
            }),
            None => {
                let hint = diag::hint(&given, W::WORDS.iter().copied());
                let words = diag::list(W::WORDS.iter().copied());
                Err(diag::unknown_word(key, given, hint, words).at(expr))
            }
        })
    }
}

/// `graph_cache_max`.
pub(crate) enum CacheMax {
    Limit(u64),
    Unlimited,
}

impl Value for CacheMax {
    fn form(key: &str) -> String {
        format!("an integer from 0 or `unlimited`, as in `{key} = 8`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<CacheMax>, TokenStream> {
        let expr = value(meta)?;
        let word = Named::of_word(expr).filter(|word| word.text == "unlimited");
        match (Count::of(expr), word) {
            (Some(count), _) => Ok(Ok(CacheMax::Limit(count.value))),
            (_, Some(_)) => Ok(Ok(CacheMax::Unlimited)),
            _ => Err(expr.to_token_stream()),
        }
    }
}

/// `output_dims`.
pub(crate) enum OutputDims {
    /// For every output.
    All(Dims),
    /// By name.
    Named(Vec<(Named, Dims)>),
}

impl Value for OutputDims {
    fn form(key: &str) -> String {
        format!("dimensions, as in `{key} = (n, 2 * m)` or, by name, `{key}(y = (n, m), z = 4)`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<OutputDims>, TokenStream> {
        let Meta::List(list) = meta else {
            return Ok(Dims::of_value(value(meta)?).map(OutputDims::All));
        };
        let pairs = list
            .parse_args_with(Punctuated::<syn::MetaNameValue, Token![,]>::parse_terminated)
            .map_err(|_| list.tokens.clone())?;
        let pair = |pair: &syn::MetaNameValue| {
            let text = text_of(&pair.path).trim_start_matches("r#").to_owned();
            Ok((
                Named {
                    text,
                    at: At::of(&pair.path),
                },
                Dims::of_value(&pair.value)?,
            ))
        };
        Ok(pairs
            .iter()
            .map(pair)
            .collect::<syn::Result<_>>()
            .map(OutputDims::Named))
    }
}

/// `modules`.
pub(crate) struct Paths(pub(crate) Vec<Path>);

impl Value for Paths {
    fn form(key: &str) -> String {
        format!("paths, as in `{key} = kernels` or `{key} = (kernels, more::kernels)`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Paths>, TokenStream> {
        let path = |expr: &Expr| match bare(expr) {
            Expr::Path(path) => Ok(path.path.clone()),
            other => Err(other.to_token_stream()),
        };
        let paths: Result<_, _> = values(meta)?.iter().map(path).collect();
        Ok(Ok(Paths(paths?)))
    }
}

/// `has_side_effect`.
pub(crate) struct Switch(pub(crate) bool);

impl Value for Switch {
    fn form(key: &str) -> String {
        format!("`{key}` alone, or `{key} = true`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Switch>, TokenStream> {
        match meta {
            Meta::Path(_) => Ok(Ok(Switch(true))),
            _ => match value(meta)? {
                Expr::Lit(ExprLit {
                    lit: Lit::Bool(on), ..
                }) => Ok(Ok(Switch(on.value))),
                other => Err(other.to_token_stream()),
            },
        }
    }
}

/// `state`.
pub(crate) struct Constructor(pub(crate) Expr);

impl Value for Constructor {
    fn form(key: &str) -> String {
        format!("the call of a constructor, as in `{key} = Plan::new(k, seed)`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Constructor>, TokenStream> {
        match value(meta)? {
            expr @ (Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_)) => {
                Ok(Ok(Constructor(expr.clone())))
            }
            other => Err(other.to_token_stream()),
        }
    }
}

/// `vjp` and `crate`.
impl Value for Path {
    fn form(key: &str) -> String {
        format!("a path, as in `{key} = some::path`")
    }

    fn read(_: &str, meta: &Meta) -> Result<syn::Result<Path>, TokenStream> {
        match value(meta)? {
            Expr::Path(path) => Ok(Ok(path.path.clone())),
            other => Err(other.to_token_stream()),
        }
    }
}
