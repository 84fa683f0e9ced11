"""Types for programs that call Rust: those of which `jax-callable stubs` makes its stubs.

What only a run can tell, dtypes and shapes, is not in them.
"""

from __future__ import annotations

# Exported for stubs of libraries that have a function called `tuple`.
import builtins as builtins  # noqa: PLC0414
from collections.abc import Callable as _AnyCallable
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar
from typing import SupportsIndex as _SupportsIndex

import jax
import numpy as np
import numpy.typing as npt

from jax_callable._callable import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")


class SupportsJaxArray(Protocol):
    """An object that turns itself into an array."""

    def __jax_array__(self) -> jax.Array:
        """The array."""
        ...


Array: TypeAlias = jax.Array
"""What a call returns."""

ArrayInput: TypeAlias = jax.Array | npt.NDArray[Any] | np.generic | SupportsJaxArray
"""What a call takes for an array. Python's numbers and lists have no dtype, and are refused."""

Bool: TypeAlias = bool | np.bool_
"""A static boolean."""

Integer: TypeAlias = int | np.integer[Any]
"""A static integer. An array is no static scalar, for it may be traced."""

Float: TypeAlias = float | np.floating[Any] | np.integer[Any]
"""A static float."""

Complex: TypeAlias = complex | np.number[Any]
"""A static complex number."""

Bytes: TypeAlias = bytes | bytearray | memoryview | Sequence[Integer] | npt.NDArray[Any]
"""A static slice of `u8`."""

Bools: TypeAlias = Sequence[Bool] | npt.NDArray[Any]
"""A static slice or array of booleans."""

Integers: TypeAlias = Sequence[Integer] | npt.NDArray[Any]
"""A static slice or array of integers."""

Floats: TypeAlias = Sequence[Float] | npt.NDArray[Any]
"""A static slice or array of floats."""

Complexes: TypeAlias = Sequence[Complex] | npt.NDArray[Any]
"""A static slice or array of complex numbers."""

Shape: TypeAlias = _SupportsIndex | Sequence[_SupportsIndex]
"""The shape of an output, or the size of its one axis."""

OutputDims: TypeAlias = Shape | Mapping[str, Shape] | None
"""The option `output_dims` of a call."""

VmapMethod: TypeAlias = (
    Literal[
        "broadcast_all", "expand_dims", "sequential", "sequential_unrolled", "legacy_vectorized"
    ]
    | None
)
"""The option `vmap_method` of a call."""

if TYPE_CHECKING:

    class Function(Callable, Generic[_P, _R]):
        """A `Callable` whose parameters and results are known. There is none when programs run."""

        def __init__(self, signature: _AnyCallable[_P, _R], /) -> None:
            """A function of this signature."""

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:  # type: ignore[override]
            """Calls the Rust function."""

        def __get__(self, instance: object, owner: type | None = None) -> Function[_P, _R]:
            """Itself: it is no method."""
