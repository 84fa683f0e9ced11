"""Values of a JSON document, of the types that are asked for.

All raise TypeError or ValueError, which say what was expected and what was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def _typed(value: Any, kind: type[_T], what: str) -> _T:
    # To Python a boolean is an integer.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {what}, got {json.dumps(value)}")
    return value


def integer(value: Any) -> int:
    """An integer."""
    return _typed(value, int, "an integer")


def size(value: Any) -> int:
    """An integer that is not negative."""
    number = integer(value)
    if number < 0:
        raise ValueError(f"expected a size, got {number}")
    return number


def boolean(value: Any) -> bool:
    """A boolean."""
    return _typed(value, bool, "a boolean")


def string(value: Any) -> str:
    """A string."""
    return _typed(value, str, "a string")


def items(value: Any, read: Callable[[Any], _T]) -> tuple[_T, ...]:
    """A list, each item read by `read`."""
    return tuple(map(read, _typed(value, list, "a list")))


def choice(value: Any, choices: tuple[_T, ...]) -> _T:
    """One of some values."""
    for known in choices:
        if known == value:
            return known
    raise ValueError(f"expected one of {', '.join(map(str, choices))}, got {json.dumps(value)}")


def optional(value: Any, read: Callable[[Any], _T]) -> _T | None:
    """Null, or what `read` makes of it."""
    return None if value is None else read(value)
