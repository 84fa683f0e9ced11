//! The expansion: the description of a callable and the call of the function, for a
//! model without mistakes.

use crate::check::{Ask, Question};
use crate::ctx::Ctx;
use crate::describe::{description, keys, text_tokens};
use crate::diag::{self, At};
use crate::model::{Callable, Param};
use crate::state;
use crate::types::{self, Platform, Role};
use crate::values::text_of;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Ident, Path};

/// The version of this crate, which must be the runtime's.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What accompanies the function, but for its module.
pub(crate) fn definition(callable: &Callable, asks: &[Ask]) -> TokenStream {
    let Callable { ctx, ident, .. } = callable;
    let private = ctx.private();
    let krate = ctx.krate();
    let def = def(ident);
    let description = description(callable);
    let text = text_tokens(callable);
    let (params, count) = (callable.params.iter(), callable.params.len());
    let types = params.map(|param| trait_item(&private, param, "TYPE"));
    let keys = keys(callable).map(|keys| {
        let keys = option(Some(quote!(&#keys)));
        quote!(const KEYS: ::core::option::Option<&'static #private::Callable> = #keys;)
    });
    let asks = asks.iter().map(|ask| ask_tokens(ctx, ident, ask));
    let vjp = vjp_tokens(callable);
    // A name of the expansion's own, which cannot hide the function.
    let call = Ident::new("call", Span::mixed_site());
    // No method: that would be compiled in the unit of the type's module, and a unit costs a dev
    // build more than what is in it.
    let body = body_name(ident);
    let args = (0..callable.params.len()).map(|i| argument(callable, &call, i));
    // What the compiler says of the call, as that only `unsafe` may make it, is said there.
    let args = quote_spanned!(ident.span()=> (#(#args),*));
    let state = state_tokens(callable, &call);
    let result = &callable.result;
    // `unsafe` is sound: the description is of these very types, and each parameter is taken
    // once.
    quote! {
        #[automatically_derived]
        unsafe impl #private::Definition for #def {
            const CALLABLE: &'static #private::Callable = &#description;
            const TEXT: &'static ::core::primitive::str = #text;
            const TYPES: &'static [#private::ParamType] = &[#(#types),*];
            const PACKED: &'static [#private::PackedType] =
                &#private::pack::<#count>(Self::TYPES);
            const SLOT: *const #private::Slot = {
                static SLOT: #private::Slot = #private::Slot::new();
                &raw const SLOT
            };
            #keys
            #state

            const CALL: #private::Body = {
                fn #body<'call>(#call: &'call #private::Call<'call>) -> #krate::Result<()> {
                    <#result as #private::IntoResult>::into_result(#ident #args)
                }
                #body
            };
        }
        #krate::macros_version! { #VERSION }
        #(#asks)*
        #vjp
        #private::inventory::submit! { #private::Declaration::new::<#def>() }
    }
}

/// The value of a parameter in a call.
fn argument(callable: &Callable, call: &Ident, index: usize) -> TokenStream {
    let private = callable.ctx.private();
    let param = &callable.params[index];
    let take = trait_item(&private, param, "take");
    // What the compiler says of the value is said at its type.
    let args = quote_spanned!(At::of(&param.ty).end=> (#call, #index));
    quote!(#take #args)
}

/// The function that builds the state, with what it may use under the parameters' names.
fn state_tokens(callable: &Callable, call: &Ident) -> Option<TokenStream> {
    let constructor = callable.state.as_ref()?;
    let (private, krate) = (callable.ctx.private(), callable.ctx.krate());
    let used: Vec<_> = state::uses(callable).iter().map(|(i, _)| *i).collect();
    let names = callable.params.iter().enumerate().filter_map(|(i, param)| {
        let is_known = match param.guess.role {
            // Also those that only a format string names.
            Role::Integer | Role::Static => true,
            Role::Context | Role::Unknown => used.contains(&i),
            _ => false,
        };
        let (name, value) = (&param.ident, argument(callable, call, i));
        is_known.then(|| quote!(let #name = #value;))
    });
    let none = quote!(#private::NoState);
    let states = state::candidates(callable);
    let holder = states.iter().rev().fold(none, |other, param| {
        let holder = trait_item(&private, param, "StateOr");
        let other = quote_spanned!(At::of(&param.ty).end=> <#other>);
        quote!(#holder #other)
    });
    // The compiler points at the whole call, so all of it is at the constructor. The trait is not
    // imported: its methods would be in the way of the constructor's own, as `builder.build()`.
    let At { start, end } = At::of(constructor);
    let into_state = quote_spanned!(start=> __jax_callable::IntoState);
    let build = quote_spanned!(end=> ::<#holder>::build(#constructor));
    // A constructor may be called `__state`, but hardly this.
    let name = format_ident!("__state_of_{}", callable.ident.unraw());
    // The asks refuse parameters that are not known yet.
    Some(quote! {
        const STATE: ::core::option::Option<#private::BuildState> = ::core::option::Option::Some({
            #[allow(unused_variables, non_snake_case)]
            fn #name<'call>(
                #call: &'call #private::Call<'call>,
            ) -> #krate::Result<#private::Built> {
                #(#names)*
                use #krate as __jax_callable;
                #into_state #build
            }
            #name
        });
    })
}

/// Stands in for the expansion of a function with mistakes, so that what refers to its
/// module does not add errors.
pub(crate) fn fallback(callable: &Callable) -> TokenStream {
    let Callable { ctx, ident, .. } = callable;
    let (private, krate, def) = (ctx.private(), ctx.krate(), def(ident));
    // Types that cannot be parameters are mistakes too.
    let params = callable.params.iter().filter(|param| param.has_traits);
    let types = params.map(|param| trait_item(&private, param, "TYPE"));
    quote!(#krate::mistaken! { #def, [#(#types),*] })
}

/// The place of a definition beside the function. If the function is on a GPU by the names of its
/// types and the feature is off, there is one error instead, at the first of them.
pub(crate) fn place(callable: &Callable, definition: TokenStream) -> TokenStream {
    let mut params = callable.params.iter();
    let cuda = params.find(|param| param.guess.platform == Some(Platform::Cuda));
    let definition = match cuda {
        None => definition,
        Some(param) => {
            let (krate, def) = (callable.ctx.krate(), def(&callable.ident));
            // The compiler points at the whole call.
            let At { start, end } = At::of(&param.ty);
            let name = Ident::new("needs_cuda", start);
            let args = quote_spanned!(end=> { { #definition } #def });
            quote! {
                use #krate::#name;
                #name! #args
            }
        }
    };
    quote! {
        // The function's own lint attributes do not reach here.
        #[allow(deprecated)]
        const _: () = { #definition };
    }
}

/// The module beside the function, for `vjp = path` and `pub use` to reach.
pub(crate) fn module(callable: &Callable) -> TokenStream {
    let (vis, module) = (&callable.vis, module_name(&callable.ident));
    quote! {
        #[doc(hidden)]
        #[allow(non_snake_case, unreachable_pub)]
        #vis mod #module {
            pub enum Def {}
        }
    }
}

/// The name of the function that calls the function, which must not hide it.
fn body_name(function: &Ident) -> Ident {
    let name = match function == "__call" {
        true => "__call_it",
        false => "__call",
    };
    Ident::new(name, Span::mixed_site())
}

/// The name of the module beside a function: the function's, if it hides no type.
fn module_name(function: &Ident) -> Ident {
    if types::is_primitive(function) {
        format_ident!("__{function}")
    } else {
        function.clone()
    }
}

/// The type in the module beside a function.
fn def(function: &Ident) -> TokenStream {
    def_at(&function.clone().into())
}

/// The type in the module beside the function at a path.
pub(crate) fn def_at(path: &Path) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = module_name(&last.ident);
    }
    quote!(#path::Def)
}

/// An item of the trait that makes the type of a parameter one, at the place of the type.
pub(crate) fn trait_item(private: &TokenStream, param: &Param, item: &str) -> TokenStream {
    let ty = &param.ty;
    let At { start, end } = At::of(ty);
    let item = Ident::new(item, end);
    let open = quote_spanned!(start=> <);
    let close = quote_spanned!(end=> >::#item);
    quote!(#open #ty as #private::FfiArg<'_> #close)
}

/// A question in const context, which fails the build at the place of the ask.
fn ask_tokens(ctx: &Ctx, ident: &Ident, ask: &Ask) -> TokenStream {
    let private = ctx.private();
    let def = def(ident);
    let callable = quote!(<#def as #private::Definition>::CALLABLE);
    let param = |i: usize| quote!(&#callable.params[#i]);
    let holds = match ask.question {
        Question::HasResult => quote!(results(#callable) > 0),
        Question::Results(count) => quote!(results(#callable) == #count),
        Question::IsCuda => quote!(is_cuda(#callable)),
        Question::IsContextFirst(i) => quote!(is_context_first(#callable, #i)),
        Question::IsInOrder(i) => quote!(is_in_order(#callable, #i)),
        Question::IsSamePlatform(i) => quote!(is_same_platform(#callable, #i)),
        Question::HasSize(i) => call("has_size", param(i)),
        Question::HasState => quote!(has_state(#callable)),
        Question::IsBuiltOnce(i) => quote!(is_built_once(#callable, #i)),
        Question::IsKnownToState(i) => quote!(is_known_to_state(#callable, #i)),
        Question::Binds(name) => quote!(binds(#callable, #name)),
        Question::IsOperand(i) => call("is_operand", param(i)),
        Question::IsResult(i) => call("is_result", param(i)),
        Question::IsOutput(i) => call("is_output", param(i)),
        Question::IsInteger(i) => call("is_integer", param(i)),
        Question::DimsFit(i) => call("dims_fit", param(i)),
        Question::HasAxis(i, axis) => call("has_axis", with(param(i), axis)),
        Question::RankAtMost(i, rank) => call("rank_at_most", with(param(i), rank)),
    };
    let text = ask.text.to_string();
    // The compiler points at the whole call, so it begins and ends where the ask does.
    let require = Ident::new("__require", ask.at.start);
    let args = quote_spanned!(ask.at.end=> (#private::check::#holds, #text));
    quote! {
        const _: () = {
            use #private::check::require as __require;
            #require #args
        };
    }
}

/// The question whether `vjp` fits, which fails the build at its path.
fn vjp_tokens(callable: &Callable) -> Option<TokenStream> {
    let Callable {
        ctx, ident, name, ..
    } = callable;
    let path = callable.vjp.as_ref()?;
    let private = ctx.private();
    let [forward, backward] =
        [def(ident), def_at(path)].map(|def| quote!(<#def as #private::Definition>::CALLABLE));
    let [what, help] = diag::vjp_does_not_fit(text_of(path), &name.text).parts();
    let At { start, end } = At::of(path);
    let require = Ident::new("__require", start);
    let args = quote_spanned!(end=> (#forward, #backward, #what, #help));
    Some(quote! {
        const _: () = {
            use #private::require_vjp as __require;
            #require #args
        };
    })
}

fn call(function: &str, args: TokenStream) -> TokenStream {
    let function = format_ident!("{function}");
    quote!(#function(#args))
}

fn with(param: TokenStream, number: usize) -> TokenStream {
    quote!(#param, #number)
}

pub(crate) fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
