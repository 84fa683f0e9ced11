//! Callables on the host: [`Array`], [`ArrayMut`], [`Scratch`] and [`Context`].

mod array;
mod context;

pub use array::{Array, ArrayMut, Scratch};
pub use context::Context;
