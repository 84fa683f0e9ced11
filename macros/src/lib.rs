//! The attribute of `jax-callable`, which re-exports it: depend on that crate.
//!
//! ```text
//! attribute, item -> parse (args, values, parse, dims) -> model (resolve) -> check -> expand
//! ```
//!
//! All of it works on `proc_macro2` tokens, and all mistakes of a function are reported
//! at once.
#![forbid(unsafe_code)]

mod args;
mod check;
mod check_dims;
mod ctx;
mod describe;
mod diag;
mod dims;
mod expand;
mod model;
mod parse;
mod resolve;
#[cfg(test)]
mod snapshots;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod types;
mod values;

use proc_macro2::TokenStream;
use quote::quote;

/// Makes a free function a typed XLA FFI target, which JAX calls.
///
/// ```
/// use jax_callable::prelude::*;
///
/// /// y <- a x + y, in place.
/// #[jax_callable(in_out = "y")]
/// fn saxpy(a: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) -> Result<()> {
///     if x.len() != y.len() {
///         return Err(Error::invalid_argument("x and y must have one length"));
///     }
///     for (y, x) in y.iter_mut().zip(x.iter()) {
///         *y += a * x;
///     }
///     Ok(())
/// }
/// ```
///
/// # Parameters
///
/// First the context if the body needs it, then inputs and in-outs, then outputs. State
/// and scratch may stand anywhere among them.
///
/// | type | what it is |
/// |---|---|
/// | `&cpu::Context`, `&cuda::Context` | the call's context |
/// | `Array<T, N>` | an input of rank `N`, from 0 to 8 |
/// | `ArrayMut<T, N>` | an output; an in-out if `in_out` names it |
/// | `Scratch<T, N>` | a workspace for the body, of the size that `#[dims(...)]` says |
/// | `bool`, integers, floats, complex numbers, `&str`, `&[T]`, `[T; K]` | a static attribute: a Python value that is known when JAX traces |
/// | `&State<S>` | what `state` has built for this call site, for `S: Send + Sync` |
/// | `&cuda::PerDevice<S>` | what `state` has built for this call site on this device, which may also use the context |
///
/// Aliases of these types work. Arguments go by their names in Python, so names are
/// plain. The function may have lifetimes, but no types as parameters, and returns `()` or
/// `Result<(), E>` with `E: Into<jax_callable::Error>`; errors and panics become errors in
/// JAX that begin with the target's name.
///
/// # Dimensions
///
/// `#[dims(...)]` on an array names its dimensions, one for each of its `N` axes (not
/// for those packed in `T`):
///
/// ```
/// # use jax_callable::prelude::*;
/// #[jax_callable]
/// fn matmul(
///     #[dims(n, k)] a: cpu::Array<f32, 2>,
///     #[dims(k, m)] b: cpu::Array<f32, 2>,
///     #[dims(n, m)] mut c: cpu::ArrayMut<f32, 2>,
/// ) {
///     for i in 0..c.dim(0) {
///         for j in 0..c.dim(1) {
///             c[[i, j]] = (0..a.dim(1)).map(|k| a[[i, k]] * b[[k, j]]).sum();
///         }
///     }
/// }
/// ```
///
/// A name alone on an axis of an input or in-out takes that axis' value; where it occurs
/// again it must have the same one. All else is arithmetic on 64-bit integers: names,
/// integer parameters, axes as `a.dim(0)`, `+ - * / %` (`/` and `%` round down),
/// `.div_ceil(b)`, `.min(b)`, `.max(b)` and parentheses. It is checked when JAX traces and
/// again in every call.
///
/// The dimensions of an output are those given by `output_dims=` in the call, else its
/// `#[dims]` or `output_dims`, else those of the first array input.
///
/// # Derivatives
///
/// JAX cannot look into a function, so `vjp` names the callable that computes its derivative in
/// reverse mode, a vector-Jacobian product:
///
/// ```
/// # use jax_callable::prelude::*;
/// /// y <- exp(k x).
/// #[jax_callable(vjp = exp_vjp)]
/// fn exp(k: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
///     for (y, x) in y.iter_mut().zip(x.iter()) {
///         *y = (k * x).exp();
///     }
/// }
///
/// /// d_x <- k y ct_y.
/// #[jax_callable]
/// fn exp_vjp(
///     k: f32,
///     y: cpu::Array<f32, 1>,
///     ct_y: cpu::Array<f32, 1>,
///     mut d_x: cpu::ArrayMut<f32, 1>,
/// ) {
///     for ((d_x, y), ct_y) in d_x.iter_mut().zip(y.iter()).zip(ct_y.iter()) {
///         *d_x = k * y * ct_y;
///     }
/// }
/// ```
///
/// Its parameters are found by their names, in any order, and have the types that those of the
/// function have:
///
/// | name | role | what it is |
/// |---|---|---|
/// | that of a static attribute, an input or an output | input | its value |
/// | `y`, `out_y` | input | the value of the in-out `y` before and after the call |
/// | `ct_y` | input | the cotangent of the output or in-out `y`: how the final number changes with it |
/// | `d_x` | output | the derivative by the input or in-out `x` |
/// | `d_y` in its `in_out` | in-out | for an in-out `y`: comes as `ct_y`, becomes the derivative |
///
/// Beside its context, state and scratch it takes nothing else, and of these what it needs, but at
/// least one cotangent. An output whose cotangent it does not take is a constant to JAX. It returns
/// the derivative by every input and in-out that has one, which are those of floats and complex
/// numbers, each of the shape of its input. JAX's cotangents are not conjugated. That it fits is checked
/// when the crate is compiled.
///
/// It may have a `vjp` itself, for second derivatives. There is no forward mode, so `jax.jvp`,
/// `jax.jacfwd` and `jax.hessian` refuse.
///
/// # Keys
///
/// | key | values | default |
/// |---|---|---|
/// | `name` | a string: the target's name | the function's name |
/// | `num_outputs` | an integer, which must equal the number of in-outs and outputs | counted |
/// | `in_out` | names of `ArrayMut` parameters that are read as well: `y`, `"y"`, `(x, y)`, `["x", "y"]` or `in_out(x, y)` | none |
/// | `output_dims` | `output_dims(c = (n, 2 * n + 1), d = m)` by name; `output_dims = (n, m)` or `output_dims = 5` for all outputs | see above |
/// | `vmap_method` | `"broadcast_all"`, `"expand_dims"`, `"legacy_vectorized"` (one call for the whole batch), `"sequential"`, `"sequential_unrolled"` (a scan) or `None` (no batching) | `"broadcast_all"` |
/// | `batch_dims` | names of leading dimensions along which the body does independent work | none |
/// | `has_side_effect` | alone, or `= true`: JAX must not drop, repeat or merge calls | off |
/// | `vjp` | the path of the callable that computes the derivative, a function with this attribute: see below | none |
/// | `state` | the call that builds the `&State<S>` of each call site from static attributes: `Plan::new(k)`, which returns `S` or a `Result<S, E>` | none |
/// | `graph_mode` | `None`, `Jax`, `Warp`, `WarpStaged`, `WarpStagedEx`: how CUDA graphs are used | `Jax` |
/// | `stage_in`, `stage_out` | names of the arrays that are staged, in the staged modes; `()` for none | all |
/// | `graph_cache_max` | an integer or `unlimited`: how many CUDA graphs are kept | the runtime's |
/// | `modules` | paths of the CUDA modules that the body uses | all of the crate's |
/// | `preload` | `CurrentDevice`, `AllDevices`, `None`: where CUDA modules are loaded already when a program for a GPU is traced | `CurrentDevice` |
/// | `crate` | the path of this crate, if it is reached by another one | `::jax_callable` |
///
/// Words may be written bare, as `GraphMode::Warp`, or as strings.
///
/// Beside the function stands a hidden module of its name, which `vjp = path` looks for;
/// `pub use` exports both.
///
/// Two functions with one `name` on two platforms are one target with two handlers.
///
/// # Errors
///
/// Every mistake that can be known at compile time is a compile error with a code
/// (`JC0042`) and a way out, at the place of the mistake, and all mistakes of a function
/// are reported together.
#[proc_macro_attribute]
pub fn jax_callable(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    callable(attribute.into(), item.into()).into()
}

/// Parses, resolves, checks and expands. The function itself is always there.
fn callable(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = diag::Errors::default();
    let args = args::Args::parse(attribute, &mut errors);
    let Some((mut function, params)) = parse::Function::parse(&item, &mut errors) else {
        let errors = errors.into_tokens();
        let item = parse::not_a_function(&item);
        return quote!(#item #errors);
    };
    let callable = resolve::resolve(args, &function, params, &mut errors);
    function.allow_unused(|ident| callable.uses(ident));
    let asks = check::check(&callable, &mut errors);
    // Among the functions of an `impl` there can be no module, nor where it would be in the way of
    // another.
    let can_stand = function.sig.receiver().is_none() && callable.hides().is_none();
    let rest = can_stand.then(|| {
        let definition = match errors.is_empty() {
            true => expand::definition(&callable, &asks),
            false => expand::fallback(&callable),
        };
        let module = expand::module(&callable);
        let place = expand::place(&callable, definition);
        quote!(#module #place)
    });
    let errors = errors.into_tokens();
    quote!(#function #errors #rest)
}
