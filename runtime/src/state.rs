//! State of a call site, built by `state = ...`.

use crate::error::{Error, Result};
use std::any::Any;
use std::ops::Deref;

/// State of a call site: what `state = Constructor(..)` of the attribute has built.
///
/// A call site is one call in one compiled program. Its state is built when the program is
/// compiled, from the static attributes of the call, and dropped with the program. All runs of
/// the call share it, on all devices and threads, so what changes in it needs a lock or
/// atomics. JAX may merge calls that are equal, and compile a program again: state is for
/// tables, plans and caches, not for results.
///
/// ```
/// use jax_callable::prelude::*;
///
/// struct Table(Vec<f64>);
///
/// impl Table {
///     fn new(size: u32, step: f64) -> Result<Table> {
///         if step <= 0.0 {
///             return Err(Error::invalid_argument(format!("expected a step above 0, got {step}")));
///         }
///         Ok(Table((0..size).map(|i| (f64::from(i) * step).sin()).collect()))
///     }
/// }
///
/// /// y[i] <- sin(step x[i]), looked up.
/// #[jax_callable(state = Table::new(size, step))]
/// fn lookup(
///     size: u32,
///     step: f64,
///     table: &State<Table>,
///     x: cpu::Array<u32, 1>,
///     mut y: cpu::ArrayMut<f64, 1>,
/// ) -> Result<()> {
///     let _ = (size, step);
///     for (y, &x) in y.iter_mut().zip(x.iter()) {
///         let entry = table.0.get(x as usize);
///         *y = *entry.ok_or_else(|| Error::out_of_range(format!("no entry {x}")))?;
///     }
///     Ok(())
/// }
///
/// # fn main() -> Result<()> {
/// use jax_callable::testing::Target;
///
/// let call = || Target::find("lookup").unwrap().call().value("size", 4_u32);
/// let outcome = call().value("step", 0.5).input("x", [2], &[3_u32, 1]).run()?;
/// assert_eq!(outcome.get::<f64>("y"), [1.5_f64.sin(), 0.5_f64.sin()]);
///
/// // An error of the constructor is the program's.
/// let failed = call().value("step", -1.0).input("x", [1], &[0_u32]).run();
/// assert!(failed.err().unwrap().to_string().ends_with("expected a step above 0, got -1"));
/// # Ok(())
/// # }
/// ```
///
/// The constructor is any call, as `Table::new(size, step)`, `make_table(size)?` or
/// `Table::default()`, over the static attributes of the function. It returns the `S` of the
/// parameter or a `Result<S, E>` with `E: Into<jax_callable::Error>`.
#[derive(Debug)]
pub struct State<S>(S);

impl<S> Deref for State<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.0
    }
}

/// State as a call site keeps it: a [`Holder`].
pub type Built = Box<dyn Any + Send + Sync>;

/// A type that a parameter refers to and that holds a state.
pub trait Holder: Any + Send + Sync {}

impl<S: Send + Sync + 'static> Holder for State<S> {}

/// Stands for the state of a function that has none.
#[derive(Debug)]
pub struct NoState;

impl Holder for NoState {}

/// What a constructor may return: the `S` of a `State<S>`, or a `Result<S, E>` with
/// `E: Into<Error>`.
#[diagnostic::on_unimplemented(
    message = "`state` builds a `{Self}`, but the parameter is a `&{H}`",
    label = "not what the parameter holds, nor a `Result` of it",
    note = "a constructor returns the `S` of the parameter, or a `Result<S, E>` with `E: Into<jax_callable::Error>`, as every `std::error::Error + Send + Sync` is"
)]
pub trait IntoState<H>: Sized {
    /// The state, or the runtime's error.
    #[doc(hidden)]
    fn into_state(self) -> Result<H>;

    /// The state as a call site keeps it.
    #[doc(hidden)]
    fn build(self) -> Result<Built>
    where
        H: Holder,
    {
        Ok(Box::new(self.into_state()?))
    }
}

#[diagnostic::do_not_recommend]
impl<S> IntoState<State<S>> for S {
    fn into_state(self) -> Result<State<S>> {
        Ok(State(self))
    }
}

#[diagnostic::do_not_recommend]
impl<S, E: Into<Error>> IntoState<State<S>> for std::result::Result<S, E> {
    fn into_state(self) -> Result<State<S>> {
        self.map(State).map_err(Into::into)
    }
}

// That there is none is an error of its own.
#[diagnostic::do_not_recommend]
impl<C> IntoState<NoState> for C {
    fn into_state(self) -> Result<NoState> {
        Ok(NoState)
    }
}
