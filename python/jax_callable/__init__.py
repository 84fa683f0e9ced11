"""Calls Rust from JAX: loads libraries of `#[jax_callable]` functions.

import jax_callable

ops = jax_callable.load("target/release/libops.so")
print(ops)
y = ops.saxpy(2.0, x, y)
"""

from typing import TYPE_CHECKING, Any

from jax_callable import errors
from jax_callable._export import disabled_checks
from jax_callable._graphs import Graphs, default_graph_cache_max, set_default_graph_cache_max
from jax_callable._library import Crate, Library, live_call_sites, targets
from jax_callable._load import load
from jax_callable._manifest import Handler, Param, Target
from jax_callable._promise import PromiseError, check_batch_dims
from jax_callable._version import __version__
from jax_callable.errors import LoadError

if TYPE_CHECKING:
    from jax_callable._callable import Callable

__all__ = [
    "Callable",
    "Crate",
    "Graphs",
    "Handler",
    "Library",
    "LoadError",
    "Param",
    "PromiseError",
    "Target",
    "__version__",
    "check_batch_dims",
    "default_graph_cache_max",
    "disabled_checks",
    "errors",
    "live_call_sites",
    "load",
    "set_default_graph_cache_max",
    "targets",
]


def __getattr__(name: str) -> Any:
    # The one public name that needs JAX; without it, listing and diagnosing must still work.
    if name == "Callable":
        from jax_callable._callable import Callable  # noqa: PLC0415

        return Callable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
