//! A library that must be refused: it links the runtime and has no callable.

use jax_callable as _;
