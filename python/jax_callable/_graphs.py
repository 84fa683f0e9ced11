"""The CUDA graphs of our own that targets keep: how many, how many at most, what they did."""

from __future__ import annotations

import json
import operator
from typing import Any

from jax_callable import _open
from jax_callable._manifest import Target
from jax_callable._open import OpenLibrary

_DEFAULT_MAX = 32
_UNLIMITED, _INHERITED = -1, -2


class Graphs:
    """The graphs that a target keeps, over all call sites and devices.

    There are some in the graph modes Warp, WarpStaged and WarpStagedEx; in the others all numbers
    stay 0. They may be asked for and changed at any time, also while calls are running.
    """

    def __init__(self, opened: OpenLibrary, path: str, index: int) -> None:
        """For a CUDA handler of a library; `of` makes it."""
        self._opened = opened
        self._path = path
        self._index = index

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._opened.graphs(self._index))
        return found

    @property
    def max(self) -> int | None:
        """How many executable graphs are kept at most, None for no limit.

        The number that was set here, else `graph_cache_max` in Rust, else the default of the
        process. Setting it gives up at once what is above it, the graphs that were not used for
        longest first; with 0 every call makes a graph of its own. Set "default" to undo that.

        Raises:
            TypeError: What is set is no integer, None or "default".
            ValueError: It is negative.
        """
        limit: int | None = self._read()["max"]
        return limit

    @max.setter
    def max(self, limit: int | str | None) -> None:
        if isinstance(limit, str) and limit != "default":
            raise TypeError(
                f'{self._path}: the limit must be an integer, None or "default", got {limit!r}'
            )
        number = _INHERITED if limit == "default" else _number(limit, self._path)
        self._opened.set_graph_cache_max(self._index, number)

    @property
    def size(self) -> int:
        """How many executable graphs are kept now."""
        return self.statistics()["executables"]

    def clear(self) -> None:
        """Gives up all graphs and staging memory. What runs on a device is not disturbed."""
        self._opened.clear_graphs(self._index)

    def statistics(self) -> dict[str, int]:
        """What the graphs did since the library was loaded, by name.

        `launches` of which `hits` were as they were; `captures` of the body; `instantiations`,
        `updates` from a capture and `patches` without one; `evictions`; `looped_batches`, in which
        the body ran once for each element, and `ungraphed_calls`, whose batch was too large for a
        graph (both name what `batch_dims` would spare); and now: `executables`, `staged_bytes`.
        """
        found: dict[str, int] = self._read()["statistics"]
        return found

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name} {number}" for name, number in self.statistics().items())
        return f"<graphs of {self._path}: at most {self.max}; {numbers}>"


def of(opened: OpenLibrary, target: Target) -> Graphs | None:
    """The graphs of a target, or None if it has no function for CUDA."""
    for handler in target.handlers:
        if handler.platform == "CUDA":
            return Graphs(opened, target.path, handler.index)
    return None


_default = _DEFAULT_MAX


def default_graph_cache_max() -> int | None:
    """How many graphs a target keeps at most that says nothing itself, None for no limit."""
    return None if _default == _UNLIMITED else _default


def set_default_graph_cache_max(limit: int | None) -> None:
    """Sets how many graphs a target keeps at most that says nothing itself.

    It counts for all libraries, loaded before or after, and for each target from its next call on.

    Args:
        limit: The number, or None for no limit. At first it is 32.

    Raises:
        TypeError: It is no integer and not None.
        ValueError: It is negative.
    """
    global _default  # noqa: PLW0603 - there is one for the process
    _default = _number(limit, "set_default_graph_cache_max")
    for opened in _open.opened_libraries():
        apply_default(opened)


def apply_default(opened: OpenLibrary) -> None:
    """Tells a library the default of the process."""
    opened.set_graph_cache_max(-1, _default)


def _number(limit: int | str | None, where: str) -> int:
    if limit is None:
        return _UNLIMITED
    if isinstance(limit, (bool, str)):
        raise TypeError(f"{where}: the limit must be an integer or None, got {limit!r}")
    try:
        number = operator.index(limit)
    except TypeError:
        raise TypeError(f"{where}: the limit must be an integer or None, got {limit!r}") from None
    if number < 0:
        raise ValueError(f"{where}: the limit must be 0 or more, or None for none, got {number}")
    return min(number, 2**62)
