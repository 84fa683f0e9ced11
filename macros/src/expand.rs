//! The expansion: the description of a callable and the call of the function, for a
//! model without mistakes.

use crate::check::{Ask, Question};
use crate::ctx::Ctx;
use crate::diag::{self, At};
use crate::model::{Callable, Dim, DimKind, Origin, Param, Reference};
use crate::state;
use crate::types::{self, Role};
use crate::values::{CacheMax, text_of};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Ident, Path, Visibility};

/// The version of this crate, which must be the runtime's.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What accompanies the function.
pub(crate) fn expand(callable: &Callable, asks: &[Ask]) -> TokenStream {
    let Callable {
        ctx, vis, ident, ..
    } = callable;
    let private = ctx.private();
    let krate = ctx.krate();
    let (module, def) = (module(vis, ident), def(ident));
    let description = description(callable);
    let description_of = quote!(<#def as #private::Definition>::CALLABLE);
    let asks = asks.iter().map(|ask| ask_tokens(ctx, ident, ask));
    let vjp = vjp_tokens(callable);
    // A name of the expansion's own, which cannot hide the function.
    let call = Ident::new("call", Span::mixed_site());
    let args = (0..callable.params.len()).map(|i| argument(callable, &call, i));
    // What the compiler says of the call, as that only `unsafe` may make it, is said there.
    let args = quote_spanned!(ident.span()=> (#(#args),*));
    let state = state_tokens(callable, &call);
    let result = &callable.result;
    // `unsafe` is sound: the description is of these very types, and each parameter is taken
    // once.
    quote! {
        #module

        // The function's own lint attributes do not reach here.
        #[allow(deprecated)]
        const _: () = {
            static __PACKED: [u8; #private::packed_len(#description_of)] =
                #private::pack(#description_of);
            static __REGISTRATION: #private::Registration =
                #private::Registration::new::<#def>(&__PACKED);
            #[automatically_derived]
            unsafe impl #private::Definition for #def {
                const CALLABLE: &'static #private::Callable = &#description;
                #state

                fn registration() -> &'static #private::Registration {
                    &__REGISTRATION
                }

                fn call<'call>(
                    #call: &'call #private::Call<'call>,
                ) -> ::core::result::Result<(), #krate::Error> {
                    <#result as #private::IntoResult>::into_result(#ident #args)
                }
            }
            #krate::macros_version! { #VERSION }
            #(#asks)*
            #vjp
            #private::inventory::submit! { #private::Registered(&__REGISTRATION) }
        };
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
    // The compiler points at the whole call, so all of it is at the constructor.
    let At { start, end } = At::of(constructor);
    let into_state = Ident::new("__IntoState", start);
    let build = quote_spanned!(end=> ::<#holder>::build(#constructor));
    // The asks refuse parameters that are not known yet.
    Some(quote! {
        const STATE: ::core::option::Option<#private::BuildState> = ::core::option::Option::Some({
            #[allow(unused_variables)]
            fn __state<'call>(
                #call: &'call #private::Call<'call>,
            ) -> ::core::result::Result<#private::Built, #krate::Error> {
                #(#names)*
                use #krate::IntoState as __IntoState;
                #into_state #build
            }
            __state
        });
    })
}

/// Stands in for the expansion of a function with mistakes, so that what refers to its
/// module does not add errors.
pub(crate) fn fallback(callable: &Callable) -> TokenStream {
    let Callable {
        ctx, vis, ident, ..
    } = callable;
    let private = ctx.private();
    let krate = ctx.krate();
    let (module, def) = (module(vis, ident), def(ident));
    // Types that cannot be parameters are mistakes too.
    let params = callable.params.iter().filter(|param| param.has_traits);
    let types = params.map(|param| trait_item(&private, param, "TYPE"));
    quote! {
        #module

        #[automatically_derived]
        unsafe impl #private::Definition for #def {
            const CALLABLE: &'static #private::Callable = &#private::check::MISTAKEN;

            fn registration() -> &'static #private::Registration {
                ::core::panic!()
            }

            fn call<'call>(
                _: &'call #private::Call<'call>,
            ) -> ::core::result::Result<(), #krate::Error> {
                ::core::panic!()
            }
        }

        const _: &[#private::ParamType] = &[#(#types),*];
    }
}

/// The module beside the function, for `vjp = path` and `pub use` to reach.
fn module(vis: &Visibility, ident: &Ident) -> TokenStream {
    let module = module_name(ident);
    quote! {
        #[doc(hidden)]
        #[allow(non_snake_case, unreachable_pub)]
        #vis mod #module {
            pub enum Def {}
        }
    }
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
fn def_at(path: &Path) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = module_name(&last.ident);
    }
    quote!(#path::Def)
}

fn description(callable: &Callable) -> TokenStream {
    let private = callable.ctx.private();
    let name = &callable.name.text;
    let doc = &callable.doc;
    // The line of the function, not of the attribute.
    let line = quote_spanned!(callable.ident.span()=> ::core::line!());
    let params = callable
        .params
        .iter()
        .map(|param| param_tokens(&private, param));
    let dim_names = &callable.dim_names;
    let vmap_method = option(callable.vmap_method);
    let batch_dims = callable.batch_dims.iter().map(|name| &name.text);
    let vjp = callable.vjp.as_ref().map(def_at);
    let graph_mode = callable
        .graph_mode
        .as_ref()
        .map(|mode| format_ident!("{}", mode.word));
    let stage_in = names(callable, &callable.stage_in);
    let stage_out = names(callable, &callable.stage_out);
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
    // Only what differs from the default: most functions say little.
    let mut keys = TokenStream::new();
    let mut key = |is_said: bool, value: TokenStream| {
        if is_said {
            keys.extend(quote!(#value,));
        }
    };
    key(!doc.is_empty(), quote!(doc: #doc));
    key(!dim_names.is_empty(), quote!(dim_names: &[#(#dim_names),*]));
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
        let vjp = option(vjp.map(|def| quote!(|| <#def as #private::Definition>::CALLABLE)));
        quote!(vjp: #vjp)
    });
    key(
        graph_mode.is_some(),
        quote!(graph_mode: #private::GraphMode::#graph_mode),
    );
    key(!callable.stage_in.is_empty(), quote!(stage_in: #stage_in));
    key(
        !callable.stage_out.is_empty(),
        quote!(stage_out: #stage_out),
    );
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
    quote! {
        #private::Callable {
            name: #name,
            module: ::core::module_path!(),
            file: ::core::file!(),
            line: #line,
            params: &[#(#params),*],
            #keys
            ..#private::Callable::DEFAULT
        }
    }
}

fn param_tokens(private: &TokenStream, param: &Param) -> TokenStream {
    let Param { name, .. } = param;
    let ty = trait_item(private, param, "TYPE");
    let in_out = param.in_out.as_ref().map(|_| quote!(.in_out()));
    let dims = param.dims.as_ref().map(|list| {
        let dims = list.dims.iter().map(|dim| dim_tokens(private, dim));
        match list.origin == Origin::All && param.is_output().is_none() {
            true => quote!(.output_dims(&[#(#dims),*])),
            false => quote!(.dims(&[#(#dims),*])),
        }
    });
    quote!(#private::Param::new(#name, #ty) #in_out #dims)
}

/// An item of the trait that makes the type of a parameter one, at the place of the type.
fn trait_item(private: &TokenStream, param: &Param, item: &str) -> TokenStream {
    let ty = &param.ty;
    let At { start, end } = At::of(ty);
    let item = Ident::new(item, end);
    let open = quote_spanned!(start=> <);
    let close = quote_spanned!(end=> >::#item);
    quote!(#open #ty as #private::FfiArg<'_> #close)
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

fn names(callable: &Callable, references: &[Reference]) -> TokenStream {
    some_list(
        references
            .iter()
            .map(|reference| &callable.params[reference.param].name),
    )
}

/// `Some(&[...])`, or `None` for nothing.
fn some_list(items: impl Iterator<Item = impl ToTokens>) -> TokenStream {
    let items: Vec<_> = items.collect();
    option((!items.is_empty()).then(|| quote!(&[#(#items),*])))
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
