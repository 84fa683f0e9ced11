//! How the expansion reaches the runtime.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

/// The path of the runtime crate, which `crate = ...` changes.
pub(crate) struct Ctx {
    krate: Path,
}

impl Ctx {
    pub(crate) fn new(krate: Option<Path>) -> Ctx {
        Ctx {
            krate: krate.unwrap_or_else(|| syn::parse_quote!(::jax_callable)),
        }
    }

    pub(crate) fn krate(&self) -> &Path {
        &self.krate
    }

    /// What the runtime exports for expansions.
    pub(crate) fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote!(#krate::__private)
    }
}
