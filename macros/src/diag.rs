//! Every text that the attribute reports, and the list that collects them.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::fmt::Display;

/// What is wrong, and what to do about it.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    code: &'static str,
    message: String,
    help: String,
}

impl Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [what, help] = self.parts();
        write!(f, "{what}\n{help}")
    }
}

macro_rules! diagnostics {
    ($($code:ident $name:ident($($arg:ident),*) $message:literal, help: $help:literal;)*) => {
        $(pub(crate) fn $name($($arg: impl Display),*) -> Text {
            Text { code: stringify!($code), message: format!($message), help: format!($help) }
        })*

        #[cfg(test)]
        const CODES: &[&str] = &[$(stringify!($code)),*];
    };
}

diagnostics! {
    // The attribute.
    JC0001 unknown_key(key, hint, keys)
        "`{key}` is not a key of `#[jax_callable]`",
        help: "{hint}the keys are {keys}";
    JC0002 duplicate_key(key)
        "`{key}` is given more than once",
        help: "keep one of them";
    JC0003 bad_value(key, form)
        "this is not a value for `{key}`",
        help: "write {form}";
    JC0004 unknown_word(key, word, hint, words)
        "`{key}` cannot be `{word}`",
        help: "{hint}the values are {words}";
    JC0005 syntax(reason)
        "the attribute cannot be read: {reason}",
        help: "write keys as `key = value`, separated by commas";
    JC0006 bad_target_name(name)
        "`{name}` cannot be the name of a target",
        help: "Python reads it as `ops.{name}`: give another one with `name = \"...\"`, of letters, digits and `_`, and no keyword of Python";
    JC0007 zero_outputs()
        "`num_outputs` must be at least 1",
        help: "leave the key out: outputs and in-outs are counted";
    JC0008 num_outputs(given, count, in_outs, outputs)
        "`num_outputs` is {given}, but the function has {count}: {in_outs} in-out and {outputs} output",
        help: "leave the key out, or name in `in_out` what is read as well as written";
    JC0009 num_outputs_asked(given)
        "`num_outputs` is {given}, but the function has another number of `ArrayMut` parameters",
        help: "leave the key out: outputs and in-outs are counted";

    // The function.
    JC0010 not_a_function()
        "`#[jax_callable]` goes on a function",
        help: "put it on a free `fn` with a body";
    JC0011 generics(name)
        "`{name}` cannot have type or const generics: a target has one signature",
        help: "write one function for each type that calls the generic one";
    JC0012 receiver()
        "a callable cannot take `self`",
        help: "make it a free function; values that outlive a call are state";
    JC0013 asynchronous()
        "a callable cannot be `async`: XLA waits for it to return",
        help: "remove `async`, and block inside where needed";
    JC0014 unsafe_fn()
        "a callable cannot be an `unsafe fn`: JAX calls it without knowing its conditions",
        help: "remove `unsafe`, check the conditions in the body and put the unsafe part in an `unsafe` block";
    JC0015 foreign_abi()
        "a callable is a plain Rust function, neither `extern` nor variadic",
        help: "remove this: the entry point with XLA's ABI is generated";
    JC0016 inexact_type()
        "`impl Trait` does not say which type this is",
        help: "write the type out, or an alias of it";
    JC0017 pattern()
        "a parameter must be a plain name, for JAX passes arguments by name",
        help: "write `name: Type` or `mut name: Type`, and take it apart in the body";
    JC0018 return_type()
        "a callable returns nothing or a `Result<(), E>`",
        help: "write results into `ArrayMut` parameters, and return `()` or `jax_callable::Result<()>`";
    JC0019 option_name(name)
        "no parameter can be called `{name}`: this is an option of every call in Python",
        help: "rename the parameter";
    JC0020 python_keyword(name)
        "no parameter can be called `{name}`: this is a keyword of Python",
        help: "rename the parameter, say `{name}_`";
    JC0021 too_many_parameters(count, limit)
        "{count} parameters are too many: a callable takes at most {limit}",
        help: "pack scalars into `&[T]` or `[T; K]`, and arrays of one type into one array";
    JC0022 static_lifetime()
        "an argument does not live for `'static`, only for the call",
        help: "leave the lifetime out";
    JC0023 mutable_reference(name)
        "`{name}` cannot be passed as `&mut`",
        help: "what a callable writes is an `ArrayMut<T, N>`; a single value is an `ArrayMut<T, 0>`";
    JC0024 parameter_cfg(name)
        "`{name}` cannot depend on `cfg`: the parameters are what JAX sees",
        help: "put `#[cfg(...)]` on two versions of the whole function";
    JC0025 no_output(name)
        "`{name}` has no output",
        help: "add an `ArrayMut` parameter: a target returns at least one array";
    JC0026 hidden_module(name)
        "`{name}` is the name of the function and the beginning of this type's path",
        help: "rename the function and set `name = \"{name}\"`: beside a callable stands a module of its name, which would hide the other one";
    JC0027 array_by_reference(name)
        "the array `{name}` is not passed by reference",
        help: "leave the `&` or `&mut` out: an array is a view already. One that is written is `mut {name}: ArrayMut<T, N>`";

    JC0028 twice()
        "`#[jax_callable]` is there twice",
        help: "keep one of them, with the keys of both";

    // Roles.
    JC0030 after_output(name, output)
        "input `{name}` comes after output `{output}`",
        help: "inputs and in-outs come first, outputs last: move `{output}` behind them, or name it in `in_out` if it is read as well";
    JC0031 out_of_order(name)
        "`{name}` is out of order",
        help: "the order is: context, inputs and in-outs, outputs";
    JC0032 context_not_first(name)
        "the context `{name}` must be the first parameter",
        help: "a callable takes at most one context, in front of all else";
    JC0033 mixed_platforms(name, platform, other)
        "`{name}` is on {platform}, but `{other}` before it is not",
        help: "write one function for each platform; with the same `name` they make one target";
    JC0034 mixed_platforms_asked(name)
        "`{name}` is not on the same platform as the parameters before it",
        help: "write one function for each platform; with the same `name` they make one target";
    JC0035 rank_too_high(name, limit)
        "`{name}` has more than {limit} dimensions",
        help: "merge dimensions in JAX, or move the last ones into the element: `[T; K]` or `[[T; C]; R]`";
    JC0036 scratch_without_dims(name)
        "nothing says how large the scratch array `{name}` is",
        help: "give it `#[dims(...)]`, of names that inputs bind, integer parameters and numbers";
    JC0037 empty_element()
        "an element is a vector without numbers",
        help: "a packed vector has at least one, as `[f32; 3]`";

    // Names in in_out, stage_in, stage_out.
    JC0040 unknown_name(key, name, hint, names)
        "`{key}` names `{name}`, which is no parameter",
        help: "{hint}the arrays are {names}";
    JC0041 duplicate_name(key, name)
        "`{key}` names `{name}` more than once",
        help: "name it once";
    JC0042 in_out_not_mutable(name)
        "`in_out` names `{name}`, which is not an `ArrayMut`",
        help: "an in-out is an `ArrayMut<T, N>`; a single value is an `ArrayMut<T, 0>`";
    JC0043 stage_in_output(name)
        "`stage_in` names `{name}`, which is not an input",
        help: "name array inputs and in-outs; outputs are staged by `stage_out`";
    JC0044 stage_out_input(name)
        "`stage_out` names `{name}`, which is not an output",
        help: "name outputs and in-outs; inputs are staged by `stage_in`";
    JC0045 stage_unstaged(key, mode)
        "`{key}` has no meaning with `graph_mode = {mode}`",
        help: "set `graph_mode = WarpStaged` or `WarpStagedEx`, or leave `{key}` out";
    JC0046 graph_mode_on_cpu(mode)
        "`graph_mode = {mode}` needs CUDA, but this function is on the CPU",
        help: "leave `graph_mode` out; on the CPU there are no graphs";

    // Dimensions.
    JC0050 dims_syntax(what)
        "{what} cannot be part of a dimension",
        help: "dimensions are made of names, integers, `+ - * / %`, parentheses, `.div_ceil(b)`, `.min(b)`, `.max(b)` and `array.dim(0)`";
    JC0051 dims_count(name, given, rank)
        "`{name}` has rank {rank}, but its dimensions number {given}",
        help: "give one for each axis of `{name}`, without those packed in the element";
    JC0052 dims_count_asked(name, given)
        "`{name}` is not an array of rank {given}, but its dimensions number {given}",
        help: "give one for each axis of `{name}`, without those packed in the element";
    JC0053 dims_not_array(name)
        "`{name}` has no dimensions, for it is not an array",
        help: "put `#[dims(...)]` on an array, as `cpu::Array<T, N>` is one; integer parameters can be used by name in its expressions";
    JC0054 duplicate_dims(name)
        "`{name}` has two `#[dims]`",
        help: "keep one of them";
    JC0055 two_rules(name)
        "the dimensions of `{name}` are given both by `#[dims]` and by `output_dims`",
        help: "keep one of them";
    JC0056 not_an_output(name, hint, names)
        "`output_dims` names `{name}`, which is no output",
        help: "{hint}the outputs are {names}; an in-out has the dimensions of its input";
    JC0057 unbound_output_dim(name, hint)
        "no input binds the dimension `{name}`",
        help: "{hint}put `#[dims(..., {name}, ...)]` on an input or in-out, write an integer, or use `array.dim(0)` or an integer parameter";
    JC0058 unbound_dim(name, hint)
        "the dimension `{name}` is only used in expressions, so nothing binds it",
        help: "{hint}an input or in-out must have `{name}` alone as one of its dimensions";
    JC0059 unknown_array(name, hint, names)
        "`{name}` in `{name}.dim(...)` is no parameter",
        help: "{hint}the arrays are {names}";
    JC0060 axis_of_no_input(name)
        "`{name}.dim(...)` is not known before the call: `{name}` is not an array input",
        help: "use an input or in-out array";
    JC0061 no_such_axis(name, axis, rank)
        "`{name}.dim({axis})` does not exist: `{name}` has rank {rank}",
        help: "axes count from 0";
    JC0062 no_such_axis_asked(name, axis)
        "`{name}.dim({axis})` does not exist: `{name}` has fewer axes",
        help: "axes count from 0";
    JC0063 not_an_integer(name)
        "`{name}` is not an integer, so it cannot be used in a dimension",
        help: "only single integers can (`i32`, `u64`, ...); change its type or pass the number as another parameter";
    JC0064 array_in_dimension(name)
        "`{name}` is an array, so it cannot be used in a dimension",
        help: "use one of its axes: `{name}.dim(0)`";
    JC0065 zero_divisor()
        "this divides by zero",
        help: "divide by another number";
    JC0066 too_many_dim_names(count, limit)
        "{count} named dimensions are too many: a callable has at most {limit}",
        help: "name those only that several axes share";

    // batch_dims and state.
    JC0070 unknown_batch_dim(name, hint, names)
        "`batch_dims` names `{name}`, which is no dimension",
        help: "{hint}the dimensions that `#[dims]` names are {names}";
    JC0071 batch_dim_not_leading(name, param)
        "the batch dimension `{name}` must be the first one of `{param}`, and occur there only",
        help: "reorder the axes, or take `{name}` out of `batch_dims`: `vmap` then runs the body once for each element";
    JC0072 batch_dim_in_expression(name)
        "the batch dimension `{name}` cannot be used in an expression, for a batch changes its value",
        help: "take `{name}` out of `batch_dims`: `vmap` then runs the body once for each element";
    JC0073 result_without_batch_dim(param, names)
        "`{param}` has no batch dimension, but every output of a batch has one",
        help: "begin its `#[dims]` with {names}, or leave `batch_dims` out: `vmap` then runs the body once for each element";
    JC0074 state_from(name)
        "`state` cannot use `{name}`: it is built from scalars, before there are arrays",
        help: "use scalar parameters only";
    JC0075 state_from_context(name)
        "`state` cannot use the context `{name}`: a `State` is built before there is a device",
        help: "use scalar parameters only, and `{name}` in the body; on CUDA, a `&cuda::PerDevice<S>` is built on each device and may use it";
    JC0076 no_state_parameter()
        "no parameter takes what `state` builds",
        help: "add a parameter `state: &State<S>`, where `S` is what the constructor returns, or on CUDA `state: &cuda::PerDevice<S>`";
    JC0077 nothing_builds(name)
        "nothing builds the state `{name}`",
        help: "say how, over scalar parameters: `#[jax_callable(state = Plan::new(k))]`";
    JC0078 second_state(name, first)
        "`{name}` is a second state beside `{first}`, and there is one constructor",
        help: "put both into one struct: a `PerDevice` one, if any of it belongs to a device";
    JC0079 state_asked(name)
        "`{name}` is a state that nothing builds, or the second one",
        help: "give its constructor with `state = ...`, one for a function";

    // Derivatives.
    JC0080 vjp_does_not_fit(vjp, name)
        "`{vjp}` does not fit as the `vjp` of `{name}`",
        help: "it may take inputs, outputs and scalars of `{name}` under their names; it takes `ct_<output>` and returns `d_<input>` for each input with a derivative";
}

/// Where in the source something stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) start: Span,
    pub(crate) end: Span,
}

impl At {
    /// The place of some tokens.
    pub(crate) fn of(tokens: &impl ToTokens) -> At {
        let mut spans = tokens.to_token_stream().into_iter().map(|t| t.span());
        let start = spans.next().unwrap_or_else(Span::call_site);
        At {
            start,
            end: spans.last().unwrap_or(start),
        }
    }

    fn error(self, text: impl Display) -> syn::Error {
        // From the start of the first token to the end of the last, which a single span
        // cannot say on a stable compiler.
        let ends = [self.start, self.end].map(|span| proc_macro2::Ident::new("x", span));
        let [start, end] = ends;
        syn::Error::new_spanned(quote::quote!(#start #end), text)
    }
}

/// All that is wrong with one function.
#[derive(Default)]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    /// How many more the compiler reports by itself.
    left: usize,
}

impl Errors {
    /// Adds an error.
    pub(crate) fn push(&mut self, at: At, text: Text) {
        self.found.push(at.error(text));
    }

    /// Adds errors that a parser returned.
    pub(crate) fn extend(&mut self, errors: syn::Error) {
        self.found.extend(errors);
    }

    /// Notes a mistake that the compiler finds in the function itself, and need not be told twice.
    pub(crate) fn leave_to_compiler(&mut self) {
        self.left += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len() + self.left
    }

    /// The errors as items that report them.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.found
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}

impl Text {
    /// What is wrong, and what to do about it, for words between them.
    pub(crate) fn parts(&self) -> [String; 2] {
        let what = format!("{} [{}]", self.message, self.code);
        [what, format!("help: {}", self.help)]
    }

    /// As what parsers return.
    pub(crate) fn at(self, tokens: &impl ToTokens) -> syn::Error {
        At::of(tokens).error(self)
    }
}

/// ``did you mean `name`? `` for the candidate nearest to a misspelt word, if one is near.
pub(crate) fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, candidate)| *similarity > 0.8 && *candidate != word)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, best)| format!("did you mean `{best}`? "))
}

/// `` `a`, `b` `` for lists of names.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(CODES.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn hints_are_near() {
        assert_eq!(
            hint("grph_mode", ["name", "graph_mode"]),
            "did you mean `graph_mode`? "
        );
        assert_eq!(hint("zzz", ["name", "graph_mode"]), "");
    }
}
