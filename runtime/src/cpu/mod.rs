//! Callables on the host: [`Array`], [`ArrayMut`] and [`Context`].

mod array;
mod context;

pub use array::{Array, ArrayMut};
pub use context::Context;
