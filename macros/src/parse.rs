//! The annotated function: its signature, with the body left as it is.

use crate::diag::{self, At, Errors};
use crate::dims::Dims;
use crate::types;
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, GenericParam, Ident, Meta, Pat, ReturnType, Signature, Type, Visibility,
};

/// A function.
pub(crate) struct Function {
    attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// Never looked into: it may be half written.
    body: TokenStream,
}

/// A parameter.
pub(crate) struct RawParam {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    /// The type with nameless lifetimes.
    pub(crate) ty: Type,
    pub(crate) dims: Option<Dims>,
    /// Nothing is wrong with the type's spelling.
    pub(crate) is_spelt_right: bool,
}

/// The parameters that could be read.
#[derive(Default)]
pub(crate) struct RawParams {
    pub(crate) params: Vec<RawParam>,
    /// Some parameter could not.
    pub(crate) incomplete: bool,
    /// Some `#[dims]` could not.
    pub(crate) dims_incomplete: bool,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Function> {
        let attrs = Attribute::parse_outer(input)?;
        let vis = input.parse()?;
        let sig = input.parse()?;
        input.parse::<Option<syn::Token![;]>>()?;
        let body = input.parse()?;
        Ok(Function {
            attrs,
            vis,
            sig,
            body,
        })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Function {
            attrs,
            vis,
            sig,
            body,
        } = self;
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

impl Function {
    /// Reads a function and takes `#[dims]` off its parameters.
    pub(crate) fn parse(item: &TokenStream, errors: &mut Errors) -> Option<(Function, RawParams)> {
        let mut function = <Function as Parse>::parse.parse2(item.clone()).ok()?;
        if function.body.is_empty() {
            errors.push(At::of(item), diag::not_a_function());
            // The compiler would miss it too.
            function.body = quote!({ ::core::todo!() });
            function.allow_unused(|_| true);
        }
        function.check_shape(errors);
        function.attrs.retain(|attr| {
            let last = attr.path().segments.last();
            let is_ours = last.is_some_and(|last| last.ident == "jax_callable");
            if is_ours {
                errors.push(At::of(attr), diag::twice());
            }
            !is_ours
        });
        let params = params(&mut function.sig.inputs, errors);
        Some((function, params))
    }

    /// Keeps the compiler from calling a parameter unused that is used, but not in the body.
    pub(crate) fn allow_unused(&mut self, is_used: impl Fn(&Ident) -> bool) {
        for input in &mut self.sig.inputs {
            if let FnArg::Typed(param) = input
                && let Pat::Ident(name) = &*param.pat
                && is_used(&name.ident)
            {
                // In front, for what the author says to count.
                let allow = syn::parse_quote!(#[allow(unused_variables)]);
                param.attrs.insert(0, allow);
            }
        }
    }

    /// The doc comment, without the space that follows each `///`.
    pub(crate) fn doc(&self) -> String {
        let lines = self.attrs.iter().filter_map(|attr| match &attr.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(line),
                    ..
                }) => Some(line.value()),
                _ => None,
            },
            _ => None,
        });
        let lines: Vec<String> = lines
            .flat_map(|text| {
                let lines = text
                    .lines()
                    .map(|line| line.strip_prefix(' ').unwrap_or(line));
                // An empty comment line is a line too.
                let empty = text.is_empty().then(String::new);
                lines
                    .map(|line| line.trim_end().to_owned())
                    .chain(empty)
                    .collect::<Vec<_>>()
            })
            .collect();
        lines.join("\n").trim().to_owned()
    }

    /// The return type, `()` if none is written.
    pub(crate) fn result(&self, errors: &mut Errors) -> Type {
        match &self.sig.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) if types::is_wrong_return(ty) => {
                errors.push(At::of(ty), diag::return_type());
                syn::parse_quote!(())
            }
            ReturnType::Type(_, ty) => types::quotable(ty, errors),
        }
    }

    /// A parameter that is a type or a constant.
    pub(crate) fn generic(&self) -> Option<&GenericParam> {
        let mut generics = self.sig.generics.params.iter();
        generics.find(|generic| !matches!(generic, GenericParam::Lifetime(_)))
    }

    fn check_shape(&self, errors: &mut Errors) {
        let sig = &self.sig;
        if let Some(generic) = self.generic() {
            errors.push(At::of(generic), diag::generics(sig.ident.unraw()));
        }
        if let Some(token) = &sig.asyncness {
            errors.push(At::of(token), diag::asynchronous());
        }
        if let syn::Safety::Unsafe(token) = &sig.safety {
            errors.push(At::of(token), diag::unsafe_fn());
        }
        if let Some(abi) = &sig.abi {
            errors.push(At::of(abi), diag::foreign_abi());
        }
        if let Some(variadic) = &sig.variadic {
            errors.push(At::of(variadic), diag::foreign_abi());
        }
    }
}

/// What stands in for an item that is no function, or cannot be read as one.
pub(crate) fn not_a_function(item: &TokenStream) -> TokenStream {
    let text = diag::not_a_function();
    if !is_fn(item) {
        let error = text.at(item).to_compile_error();
        return quote!(#item #error);
    }
    // The compiler has reported what is wrong with its syntax. If it found nothing, it comes to
    // generate code, and to this.
    let item = without_dims(item.clone());
    let text = text.to_string();
    quote! {
        #item
        const _: () = {
            fn unread<T>() {
                const { ::core::panic!(#text) }
            }
            #[used]
            static UNREAD: fn() = unread::<()>;
        };
    }
}

/// Whether an item begins as a function does: attributes, visibility and such, and `fn`.
fn is_fn(item: &TokenStream) -> bool {
    let mut words = item.clone().into_iter().filter_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let in_front = [
        "pub", "crate", "default", "const", "async", "safe", "unsafe", "extern",
    ];
    words.find(|word| !in_front.contains(&&**word)).as_deref() == Some("fn")
}

/// Tokens without `#[dims(...)]`.
fn without_dims(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        let TokenTree::Group(group) = tree else {
            kept.push(tree);
            continue;
        };
        let first = group.stream().into_iter().next();
        let is_dims = matches!(first, Some(TokenTree::Ident(word)) if word == "dims");
        match kept.last() {
            Some(TokenTree::Punct(hash)) if is_dims && hash.as_char() == '#' => drop(kept.pop()),
            _ => {
                let mut inner = Group::new(group.delimiter(), without_dims(group.stream()));
                inner.set_span(group.span());
                kept.push(inner.into());
            }
        }
    }
    kept.into_iter().collect()
}

fn params(inputs: &mut Punctuated<FnArg, syn::Token![,]>, errors: &mut Errors) -> RawParams {
    let mut found = RawParams::default();
    for input in inputs {
        let param = match input {
            FnArg::Receiver(receiver) => {
                errors.push(At::of(receiver), diag::receiver());
                None
            }
            FnArg::Typed(param) => {
                let dims = dims(
                    &mut param.attrs,
                    &param.pat,
                    &mut found.dims_incomplete,
                    errors,
                );
                let ident = ident(&param.pat, errors);
                let before = errors.count();
                types::refuse_inside(&param.ty, errors);
                let ty = types::quotable(&param.ty, errors);
                if types::is_unsized(&ty) {
                    errors.leave_to_compiler();
                }
                ident.map(|ident| {
                    let name = ident.unraw().to_string();
                    if let Some(cfg) = param.attrs.iter().find(|attr| attr.path().is_ident("cfg")) {
                        errors.push(At::of(cfg), diag::parameter_cfg(&name));
                    }
                    if types::is_reference_to_an_array(&ty) {
                        found.incomplete = true;
                        errors.push(At::of(&param.ty), diag::array_by_reference(&name));
                    } else if types::is_mutable_reference(&ty) {
                        // Meant as an output, most likely.
                        found.incomplete = true;
                        errors.push(At::of(&param.ty), diag::mutable_reference(&name));
                    }
                    RawParam {
                        ident,
                        name,
                        ty,
                        dims,
                        is_spelt_right: errors.count() == before,
                    }
                })
            }
        };
        found.incomplete |= param.is_none();
        found.params.extend(param);
    }
    found
}

fn ident(pat: &Pat, errors: &mut Errors) -> Option<Ident> {
    match pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some(name.ident.clone())
        }
        _ => {
            errors.push(At::of(pat), diag::pattern());
            None
        }
    }
}

/// Takes `#[dims(...)]` off.
fn dims(
    attrs: &mut Vec<Attribute>,
    pat: &Pat,
    incomplete: &mut bool,
    errors: &mut Errors,
) -> Option<Dims> {
    let mut dims = None;
    attrs.retain(|attr| {
        if is_conditional_dims(attr) {
            *incomplete = true;
            errors.push(At::of(attr), diag::parameter_cfg(pat.to_token_stream()));
            return false;
        }
        if !attr.path().is_ident("dims") {
            return true;
        }
        let read = match &attr.meta {
            Meta::List(list) => Dims::of_list(&list.tokens),
            other => Err(diag::bad_value("dims", "`#[dims(n, m)]`").at(other)),
        };
        match read {
            Ok(_) if dims.is_some() => {
                errors.push(At::of(attr), diag::duplicate_dims(pat.to_token_stream()));
            }
            Ok(read) => dims = Some(read),
            Err(error) => {
                *incomplete = true;
                errors.extend(error);
            }
        }
        false
    });
    dims
}

/// Whether an attribute is a `#[cfg_attr(..., dims(...))]`, which the compiler has not resolved.
fn is_conditional_dims(attr: &Attribute) -> bool {
    let Meta::List(list) = &attr.meta else {
        return false;
    };
    let is_comma =
        |tree: &TokenTree| matches!(tree, TokenTree::Punct(comma) if comma.as_char() == ',');
    let mut given = list
        .tokens
        .clone()
        .into_iter()
        .skip_while(|tree| !is_comma(tree));
    let is_dims = |tree: TokenTree| matches!(tree, TokenTree::Ident(word) if word == "dims");
    list.path.is_ident("cfg_attr") && given.any(is_dims)
}
