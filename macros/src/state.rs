//! The parameters that `state = ...` uses.

use crate::diag::At;
use crate::model::{Callable, Param};
use crate::types::{self, Role};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprCall, ExprClosure, ExprPath, Macro};

/// The parameters that stand in the constructor's call, by position, with their places.
pub(crate) fn uses(callable: &Callable) -> Vec<(usize, At)> {
    let Some(state) = &callable.state else {
        return Vec::new();
    };
    let mut uses = Uses {
        params: &callable.params,
        hidden: Vec::new(),
        found: Vec::new(),
    };
    // There is no need to change anything, but it is the visitor that `syn` is built with.
    uses.visit_expr_mut(&mut state.clone());
    uses.found
}

/// The parameters that may be the state: the one that says so, or all that say nothing.
pub(crate) fn candidates(callable: &Callable) -> Vec<&Param> {
    let params = || callable.params.iter();
    match params().find(|param| param.guess.role.is_state()) {
        Some(state) => vec![state],
        None => params()
            .filter(|param| param.guess.role == Role::Unknown)
            .filter(|param| !types::is_state_by_value(&param.ty))
            .collect(),
    }
}

struct Uses<'a> {
    params: &'a [Param],
    /// What closures around here call their own arguments.
    hidden: Vec<String>,
    found: Vec<(usize, At)>,
}

impl Uses<'_> {
    fn see(&mut self, ident: &Ident) {
        let name = ident.unraw().to_string();
        let param = self.params.iter().position(|param| param.name == name);
        if let Some(param) = param.filter(|_| !self.hidden.contains(&name)) {
            self.found.push((param, At::of(ident)));
        }
    }
}

impl VisitMut for Uses<'_> {
    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if let Some(ident) = path.path.get_ident() {
            self.see(ident);
        }
    }

    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        // No parameter can be called: a function has that name too.
        if !matches!(*call.func, Expr::Path(_)) {
            self.visit_expr_mut(&mut call.func);
        }
        for arg in &mut call.args {
            self.visit_expr_mut(arg);
        }
    }

    fn visit_macro_mut(&mut self, invocation: &mut Macro) {
        each_ident(invocation.tokens.clone(), &mut |ident| self.see(ident));
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        let outside = self.hidden.len();
        each_ident(closure.inputs.to_token_stream(), &mut |ident| {
            self.hidden.push(ident.unraw().to_string());
        });
        self.visit_expr_mut(&mut closure.body);
        self.hidden.truncate(outside);
    }
}

fn each_ident(tokens: TokenStream, visit: &mut dyn FnMut(&Ident)) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(ident) => visit(&ident),
            TokenTree::Group(group) => each_ident(group.stream(), visit),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
