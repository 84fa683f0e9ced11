//! The description of a callable: as a constant, and as what a library holds of it.

use crate::expand::{def_at, option};
use crate::model::{Callable, Dim, DimKind, Origin, Param, Reference};
use crate::text;
use crate::values::{CacheMax, text_of};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};

/// The description, for use at compile time: what rules may ask about.
pub(crate) fn description(callable: &Callable) -> TokenStream {
    let private = callable.ctx.private();
    let rest = match keys(callable) {
        Some(_) => quote!(*Self::KEYS.unwrap()),
        None => quote!(#private::Callable::DEFAULT),
    };
    let name = &callable.name.text;
    let params = callable.params.iter().enumerate();
    let params = params.map(|(i, param)| param_tokens(&private, i, param));
    let dim_names = &callable.dim_names;
    let dim_names = (!dim_names.is_empty()).then(|| quote!(dim_names: &[#(#dim_names),*],));
    quote! {
        #private::Callable { name: #name, params: &[#(#params),*], #dim_names ..#rest }
    }
}

/// The description for when the program runs, see `text`.
pub(crate) fn text_tokens(callable: &Callable) -> TokenStream {
    // The line of the function, not of the attribute.
    let line = quote_spanned!(callable.ident.span()=> ::core::line!());
    let text = format!(":{}", text::write(callable));
    quote! {
        ::core::concat!(#line, #text, ::core::module_path!(), "\0", ::core::file!())
    }
}

/// What the attribute's keys say, if it is not the default: most functions say little.
pub(crate) fn keys(callable: &Callable) -> Option<TokenStream> {
    let private = callable.ctx.private();
    let vmap_method = option(callable.vmap_method);
    let batch_dims = callable.batch_dims.iter().map(|name| &name.text);
    let vjp = callable.vjp.as_ref().map(def_at);
    let graph_mode = callable
        .graph_mode
        .as_ref()
        .map(|mode| format_ident!("{}", mode.word));
    let stage_in = names(callable, callable.stage_in.as_deref());
    let stage_out = names(callable, callable.stage_out.as_deref());
    let graph_cache_max = callable.graph_cache_max.as_ref().map(|max| match max {
        CacheMax::Limit(limit) => quote!(Limit(#limit)),
        CacheMax::Unlimited => quote!(Unlimited),
    });
    let modules = some_list(callable.modules.iter().map(|path| {
        let text = text_of(path);
        quote!(#private::ModuleUse { path: #text, id: #path::ID })
    }));
    let preload = callable.preload;
    let state = callable.state.as_ref().map(text_of);
    let mut keys = TokenStream::new();
    let mut key = |is_said: bool, value: TokenStream| {
        if is_said {
            keys.extend(quote!(#value,));
        }
    };
    key(
        callable.vmap_method != Some("broadcast_all"),
        quote!(vmap_method: #vmap_method),
    );
    key(
        !callable.batch_dims.is_empty(),
        quote!(batch_dims: &[#(#batch_dims),*]),
    );
    key(callable.has_side_effect, quote!(has_side_effect: true));
    key(vjp.is_some(), {
        let vjp = option(vjp.map(|def| quote!(<#def as #private::Definition>::callable)));
        quote!(vjp: #vjp)
    });
    key(
        graph_mode.is_some(),
        quote!(graph_mode: #private::GraphMode::#graph_mode),
    );
    key(callable.stage_in.is_some(), quote!(stage_in: #stage_in));
    key(callable.stage_out.is_some(), quote!(stage_out: #stage_out));
    key(
        graph_cache_max.is_some(),
        quote!(graph_cache_max: #private::GraphCacheMax::#graph_cache_max),
    );
    key(!callable.modules.is_empty(), quote!(modules: #modules));
    key(preload != "CurrentDevice", quote!(preload: #preload));
    key(state.is_some(), {
        let state = option(state);
        quote!(state: #state)
    });
    (!keys.is_empty()).then(|| quote!(#private::Callable { #keys ..#private::Callable::DEFAULT }))
}

fn param_tokens(private: &TokenStream, index: usize, param: &Param) -> TokenStream {
    let Param { name, .. } = param;
    let in_out = param.in_out.as_ref().map(|_| quote!(.in_out()));
    let dims = param.dims.as_ref().map(|list| {
        let dims = list.dims.iter().map(|dim| dim_tokens(private, dim));
        match list.origin == Origin::All && param.is_output().is_none() {
            true => quote!(.output_dims(&[#(#dims),*])),
            false => quote!(.dims(&[#(#dims),*])),
        }
    });
    quote!(#private::Param::new(#name, Self::TYPES[#index]) #in_out #dims)
}

fn dim_tokens(private: &TokenStream, dim: &Dim) -> TokenStream {
    match &dim.kind {
        DimKind::Const(value) => quote!(#private::Dim::Const(#value)),
        DimKind::Name(name) => quote!(#private::Dim::Name(#name)),
        DimKind::Axis(param, axis) => quote!(#private::Dim::Axis(#param, #axis)),
        DimKind::Scalar(param) => quote!(#private::Dim::Scalar(#param)),
        DimKind::Op(op, args) => {
            let op = format_ident!("{op}");
            let [left, right] = args.each_ref().map(|arg| dim_tokens(private, arg));
            quote!(#private::Dim::Op(#private::DimOp::#op, &#left, &#right))
        }
    }
}

fn names(callable: &Callable, references: Option<&[Reference]>) -> TokenStream {
    option(references.map(|references| {
        let names = references
            .iter()
            .map(|reference| &callable.params[reference.param].name);
        quote!(&[#(#names),*])
    }))
}

/// `Some(&[...])`, or `None` for nothing.
fn some_list(items: impl Iterator<Item = impl ToTokens>) -> TokenStream {
    let items: Vec<_> = items.collect();
    option((!items.is_empty()).then(|| quote!(&[#(#items),*])))
}
