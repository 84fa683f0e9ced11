"""A target as a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jax_callable import _text
from jax_callable._arguments import (
    array_operands,
    match_arguments,
    output_shapes,
    static_scalars,
)
from jax_callable._dims import environment
from jax_callable._manifest import VMAP_METHODS, Target
from jax_callable._preload import Preload
from jax_callable._primitive import Call, bind

if TYPE_CHECKING:
    from jax_callable._graphs import Graphs
    from jax_callable._library import Crate

_DEFAULT: Any = object()


class Callable:
    """A Rust function that JAX programs call like any other.

    It takes static scalars (Python or NumPy values) and arrays, by position or by name, and works
    under every JAX transformation but differentiation, which needs `jax.custom_vjp` around it.

    Attributes:
        target: The description of what is called.
    """

    def __init__(
        self,
        target: Target,
        xla_name: str,
        library_path: str,
        preload: Preload | None = None,
        graphs: Graphs | None = None,
    ) -> None:
        """Wraps a registered target; `jax_callable.load` does it.

        Args:
            target: The description.
            xla_name: The name under which it is registered in this process.
            library_path: Where its library can be loaded again, to unpickle.
            preload: What is to be done when a call is traced.
            graphs: The CUDA graphs that it keeps.
        """
        self.target = target
        self.__name__ = target.name
        self.__qualname__ = target.path
        self.__module__ = "jax_callable"
        self.__doc__ = _text.doc(target)
        self._xla_name = xla_name
        self._library_path = library_path
        self._preload = preload
        self._graphs = graphs
        self._crate: Crate | None = None

    def __call__(
        self,
        /,
        *args: Any,
        output_dims: Any = None,
        vmap_method: str | None = _DEFAULT,
        **kwargs: Any,
    ) -> Any:
        """Calls the Rust function.

        Args:
            *args: Inputs in Rust's order.
            output_dims: Shapes of the outputs in place of their rule: an int or a tuple for all
                outputs, or a dict by output name. Dimensions inside vector and matrix elements may
                be included or left out. Batch axes of `jax.vmap` are left out.
            vmap_method: What `jax.vmap` does: "broadcast_all", "expand_dims" and
                "legacy_vectorized" make one call for the whole batch, "sequential" and
                "sequential_unrolled" one for each element, None refuses.
            **kwargs: Inputs by name.

        Returns:
            The array for one result; for several a tuple, in-outs first, then outputs.

        Raises:
            TypeError: An argument has a wrong type, dtype or rank, is missing, unknown or given
                twice, or a static scalar is traced.
            ValueError: A dimension, an output shape or the vmap method does not fit.
            OverflowError: A static scalar is out of the range of its Rust type.
        """
        target = self.target
        if vmap_method is _DEFAULT:
            vmap_method = target.vmap_method
        elif vmap_method not in VMAP_METHODS:
            raise ValueError(
                f"{target.path}: vmap_method must be one of "
                f"{', '.join(map(repr, VMAP_METHODS))}, got {vmap_method!r}"
            )
        values = match_arguments(target, args, kwargs)
        attributes = static_scalars(target, values)
        operands = array_operands(target, values)
        dims = environment(target, [operand.shape for operand in operands], attributes)
        if isinstance(output_dims, Mapping) and not output_dims:
            output_dims = None
        call = Call(
            target=target,
            xla_name=self._xla_name,
            attributes=tuple(attributes.items()),
            output_shapes=tuple(output_shapes(target, dims, output_dims)),
            output_dims_given=output_dims is not None,
            vmap_method=vmap_method,
        )
        if self._preload is not None:
            self._preload()
        results = bind(call, operands)
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def graphs(self) -> Graphs:
        """The CUDA graphs of our own that the target keeps, their limit and statistics.

        Raises:
            AttributeError: The target has no function for CUDA.
        """
        if self._graphs is None:
            raise AttributeError(name="graphs")  # `__getattr__` has the words.
        return self._graphs

    @property
    def signature(self) -> inspect.Signature:
        """Parameters and results with their types."""
        return _text.signature(self.target)

    __signature__ = signature

    def __repr__(self) -> str:
        return f"<jax_callable {self.target.path}{_text.call(self.target)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Callable):
            return NotImplemented
        return self._xla_name == other._xla_name

    def __hash__(self) -> int:
        return hash(self._xla_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._library_path, self.target.path)

    def __get__(self, instance: object, owner: type | None = None) -> Callable:
        # As a class attribute it stays what it is, and help() takes it for a function.
        return self

    def __getattr__(self, name: str) -> Any:
        # A function with the name of a crate is also the way to that crate's functions.
        crate = self.__dict__.get("_crate")
        if crate is not None and name in dir(crate):
            return getattr(crate, name)
        if name == "graphs":
            platforms = " and ".join(self.target.platforms)
            raise AttributeError(
                f"{self.target.path} has no CUDA graphs: the library has it for {platforms} only"
            )
        raise AttributeError(f"{self.target.path!r} has no attribute {name!r}")


def _restore(library_path: str, path: str) -> Callable:
    from jax_callable._load import load  # noqa: PLC0415 - that module imports this one

    restored: Callable = load(library_path)[path]
    return restored
