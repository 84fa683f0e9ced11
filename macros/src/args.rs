//! The syntax of the attribute's keys.

use crate::diag::{self, At, Errors};
use crate::values::{
    CacheMax, Choice, Constructor, Count, GraphMode, Named, Names, OutputDims, Paths, Preload,
    Switch, Value, VmapMethod, text_of,
};
use darling::FromMeta;
use darling::ast::NestedMeta;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Meta, Path};

/// The keys, as written.
#[derive(Default, FromMeta)]
#[darling(default)]
pub(crate) struct Args {
    pub(crate) name: Key<Named>,
    pub(crate) num_outputs: Key<Count>,
    pub(crate) in_out: Key<Names>,
    pub(crate) graph_mode: Key<Choice<GraphMode>>,
    pub(crate) vmap_method: Key<Choice<VmapMethod>>,
    pub(crate) batch_dims: Key<Names>,
    pub(crate) output_dims: Key<OutputDims>,
    pub(crate) stage_in: Key<Names>,
    pub(crate) stage_out: Key<Names>,
    pub(crate) graph_cache_max: Key<CacheMax>,
    pub(crate) modules: Key<Paths>,
    pub(crate) preload: Key<Choice<Preload>>,
    pub(crate) has_side_effect: Key<Switch>,
    pub(crate) state: Key<Constructor>,
    pub(crate) vjp: Key<Path>,
    #[darling(rename = "crate")]
    pub(crate) krate: Key<Path>,
    /// The attribute could not be read to its end.
    #[darling(skip)]
    pub(crate) incomplete: bool,
}

const KEYS: &[&str] = &[
    "name",
    "num_outputs",
    "in_out",
    "graph_mode",
    "vmap_method",
    "batch_dims",
    "output_dims",
    "stage_in",
    "stage_out",
    "graph_cache_max",
    "modules",
    "preload",
    "has_side_effect",
    "state",
    "vjp",
    "crate",
];

impl Args {
    /// Reads the attribute; what cannot be read is reported and left out.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
        let incomplete = |errors: &mut Errors, error: syn::Error| {
            errors.extend(error);
            Args {
                incomplete: true,
                ..Args::default()
            }
        };
        let mut items = match NestedMeta::parse_meta_list(tokens) {
            Ok(items) => items,
            Err(error) => {
                let text = diag::syntax(&error);
                return incomplete(errors, syn::Error::new(error.span(), text));
            }
        };
        let mut seen = Vec::new();
        items.retain(|item| {
            let path = match item {
                NestedMeta::Meta(meta) => meta.path(),
                NestedMeta::NameValueInvalidExpr(meta) => &meta.path,
                NestedMeta::Lit(lit) => {
                    errors.push(At::of(lit), diag::syntax("expected a key"));
                    return false;
                }
            };
            let key = text_of(path);
            let text = if !KEYS.contains(&&*key) {
                let hint = diag::hint(&key, KEYS.iter().copied());
                diag::unknown_key(&key, hint, diag::list(KEYS.iter().copied()))
            } else if seen.contains(&key) {
                diag::duplicate_key(&key)
            } else {
                seen.push(key);
                return true;
            };
            errors.push(At::of(path), text);
            false
        });
        Args::from_list(&items).unwrap_or_else(|error| incomplete(errors, error.into()))
    }
}

/// A key that may be there, with its value or what is wrong with it. A wrong value does
/// not stop the others from being read.
pub(crate) struct Key<T>(Option<syn::Result<T>>);

impl<T> Key<T> {
    /// Reports a wrong value.
    pub(crate) fn get(self, errors: &mut Errors) -> Option<T> {
        match self.0? {
            Ok(value) => Some(value),
            Err(error) => {
                errors.extend(error);
                None
            }
        }
    }

    /// Whether there is a wrong value.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self.0, Some(Err(_)))
    }
}

impl<T> Default for Key<T> {
    fn default() -> Key<T> {
        Key(None)
    }
}

impl<T: Value> FromMeta for Key<T> {
    fn from_meta(meta: &Meta) -> darling::Result<Key<T>> {
        let key = text_of(meta.path());
        let value = T::read(&key, meta).unwrap_or_else(|at| Err(wrong::<T>(&key, at)));
        Ok(Key(Some(value)))
    }

    fn from_invalid_expr(meta: &darling::ast::MetaNameValueInvalidExpr) -> darling::Result<Key<T>> {
        let error = wrong::<T>(&text_of(&meta.path), meta.value.to_token_stream());
        Ok(Key(Some(Err(error))))
    }
}

fn wrong<T: Value>(key: &str, at: TokenStream) -> syn::Error {
    diag::bad_value(key, T::form(key)).at(&at)
}
