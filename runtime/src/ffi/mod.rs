//! XLA's side of the boundary: the C API, and the only host code with `unsafe`.
//!
//! `sys` is the C layout, `api` calls it, `attrs` and `frame` read what a call brings,
//! `entry` holds the handlers, `state` the call sites that XLA keeps for us, `known` what was
//! found right at one before, `values` what a body finds of its parameters and `view` makes them of,
//! `pool` uses XLA's threads, and `cuda_call`, `cuda_view` and `device_state` are what differs on a
//! GPU. `graph_call` brings calls to graphs of our own, for which `relocate` gives a frame's buffers
//! other addresses.

pub(crate) mod api;
pub(crate) mod attrs;
mod batched;
pub(crate) mod buffer;
#[cfg(feature = "_cuda")]
pub(crate) mod cuda_call;
#[cfg(feature = "_cuda")]
pub(crate) mod cuda_view;
#[cfg(feature = "_cuda")]
pub(crate) mod device_state;
pub(crate) mod entry;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(feature = "_cuda")]
mod graph_call;
pub(crate) mod host;
pub(crate) mod host_call;
pub(crate) mod host_damage;
pub(crate) mod host_frame;
pub(crate) mod host_memory;
pub(crate) mod host_site;
pub(crate) mod host_table;
mod known;
mod place;
pub(crate) mod plain;
pub(crate) mod pool;
#[cfg(feature = "_cuda")]
mod relocate;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod sys;
mod values;
pub(crate) mod view;

#[cfg(test)]
mod tests;
