//! Runs targets without JAX, for `cargo test`.
//!
//! [`Target`] finds a callable of this program by its name, [`Call`] takes its arguments
//! by the names of its parameters and plays XLA's side: it makes the call frame, runs
//! INSTANTIATE and EXECUTE, and gives back what was written, or the error. The path from
//! the frame to the function is the one that JAX takes. [`Call::check_batch_dims`] checks what
//! an author promises to `jax.vmap`. For GPUs, [`Call::instantiate`] makes a [`CallSite`], which runs on
//! the devices and streams that it is given.
//!
//! ```
//! use jax_callable::prelude::*;
//! use jax_callable::testing::Target;
//!
//! /// y <- a x + y, in place.
//! #[jax_callable(in_out = "y")]
//! fn axpy(a: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
//!     for (y, x) in y.iter_mut().zip(x.iter()) {
//!         *y += a * x;
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let outcome = Target::find("axpy")?
//!     .call()
//!     .value("a", 2.0_f32)
//!     .input("x", [3], &[1.0_f32, 2.0, 3.0])
//!     .input("y", [3], &[10.0_f32, 20.0, 30.0])
//!     .run()?;
//! assert_eq!(outcome.get::<f32>("y"), [12.0, 24.0, 36.0]);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "ndarray")]
mod arrays;
mod call;
mod damage;
mod layout;
mod outcome;
mod promise;
mod run;
mod target;
mod value;

pub use crate::ffi::host_site::CallSite;
pub use call::Call;
pub use damage::{Damage, DamageReport};
pub use outcome::Outcome;
pub use target::{Metadata, Target};
pub use value::IntoStatic;

#[cfg(test)]
mod tests;
