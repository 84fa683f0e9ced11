"""Static scalars: from Python values to the attributes that the handler reads.

Values travel as raw bits. JAX decides by `==` on attributes whether a compiled program fits, and
there 0.0 equals -0.0, 1 equals 1.0 and NaN differs from itself; bits have none of these faults.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from jax_callable._manifest import Param

_Number = TypeVar("_Number", float, complex)

_CHARACTERS = (str, bytes, bytearray)


@dataclass(frozen=True)
class ArrayAttribute:
    """A one-dimensional array attribute, comparable and hashable by its bytes.

    Attributes:
        dtype: "int64" or "uint8".
        data: The elements.
    """

    dtype: str
    data: bytes

    def numpy(self) -> npt.NDArray[Any]:
        """The elements as an array."""
        return np.frombuffer(self.data, dtype=self.dtype)


Attribute: TypeAlias = int | str | ArrayAttribute
"""An int is a signed 64-bit attribute."""


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a manifest's name."""
    if name == "bfloat16" or name.startswith("float8_"):
        import ml_dtypes  # noqa: PLC0415 - comes with JAX, which listing a library does not need

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    return np.dtype(name)


def encode(target: str, param: Param, value: Any) -> Attribute:
    """Checks a value for a static scalar and encodes it.

    Args:
        target: `crate.name`, for messages.
        param: The parameter.
        value: A Python, NumPy or concrete 0-d JAX value; for `&[T]` and `[T; K]` a sequence.

    Raises:
        TypeError: The value is of another kind; 2.5 and True are no integers, 1 is no bool.
        ValueError: `[T; K]` got another number of values, or a string is not valid Unicode.
        OverflowError: The value is out of the range of the Rust type.
    """
    if param.length is None:
        word = _plain(param.dtype, value)
        if word is not None:
            return word
    place = f"{target}: parameter `{param.name}`"
    if param.dtype == "str":
        return _string(place, value)
    dtype = numpy_dtype(param.dtype)
    if param.length is None:
        words = _words(_scalar(place, dtype, value).reshape(1))
        if words.size == 1:
            return int(words[0])
        return ArrayAttribute("int64", words.tobytes())
    elements = _sequence(place, param, dtype, value)
    if param.length not in ("slice", elements.size):
        raise ValueError(f"{place}: expected {param.length} values ({param}), got {elements.size}")
    if dtype == np.uint8:
        return ArrayAttribute("uint8", elements.tobytes())
    return ArrayAttribute("int64", _words(elements).tobytes())


def _plain(dtype: str, value: Any) -> int | None:
    """Most calls' scalars without NumPy, which takes longer; None for all others."""
    if type(value) is float:
        try:
            if dtype == "float32":
                return int.from_bytes(struct.pack("<f", value), "little")
            if dtype == "float64":
                return int.from_bytes(struct.pack("<d", value), "little", signed=True)
        except OverflowError:
            return None
    if type(value) is int and dtype in ("int32", "int64"):
        bound = 2**31 if dtype == "int32" else 2**63
        return value if -bound <= value < bound else None
    return None


def integer_value(param: Param, attribute: Attribute) -> int | None:
    """The value of an encoded integer scalar, for dimension rules; None for other kinds."""
    if not isinstance(attribute, int) or np.dtype(param.dtype).kind not in "iu":
        return None
    return attribute + 2**64 if param.dtype == "uint64" and attribute < 0 else attribute


def _words(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The bits of each element, zero-extended to 64; integers sign-extended; complex128 as two."""
    if array.dtype.kind in "biu":
        return array.astype(np.int64)  # wraps for uint64 from 2**63
    if array.dtype.itemsize < 8:
        return array.view(f"uint{8 * array.dtype.itemsize}").astype(np.int64)
    return array.view(np.int64)


def _string(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{place}: expected a str, got {describe(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{place}: the string is not valid Unicode: {error}") from None
    return str(value)


def _sequence(place: str, param: Param, dtype: np.dtype[Any], value: Any) -> npt.NDArray[Any]:
    if isinstance(value, bytes | bytearray | memoryview) and dtype == np.uint8:
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        array = np.asarray(value)
        if array.ndim != 1:
            raise ValueError(f"{place}: expected one axis ({param}), got shape {array.shape}")
        if array.dtype == dtype:
            return np.ascontiguousarray(array)
        value = list(array)
    if not isinstance(value, Sequence) or isinstance(value, _CHARACTERS):
        raise TypeError(
            f"{place}: expected a sequence of {param.dtype} ({param}), got {describe(value)}"
        )
    elements = [_scalar(f"{place}[{i}]", dtype, element) for i, element in enumerate(value)]
    return np.array(elements, dtype=dtype)


def _scalar(place: str, dtype: np.dtype[Any], value: Any) -> npt.NDArray[Any]:
    """The value as a 0-d array of exactly this dtype."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if value.shape != ():
            raise TypeError(
                f"{place}: expected one {dtype.name}, got an array of shape {tuple(value.shape)}"
            )
        array = np.asarray(value)
        if array.dtype == dtype:
            return array  # keeps the payload of a NaN
        value = array[()]
        kind = "f" if array.dtype.name == "bfloat16" else array.dtype.kind
        if kind in "biufc":
            value = {"b": bool, "f": float, "c": complex}.get(kind, int)(value)
    if dtype.kind == "b":
        if not isinstance(value, bool):
            raise _wrong_type(place, dtype, describe(value))
        return np.array(value)
    if isinstance(value, bool):
        remedy = f"{value}; write int({value}) if you mean the number"
        raise _wrong_type(place, dtype, remedy)
    if dtype.kind in "iu":
        return _integer(place, dtype, value)
    if dtype.kind == "c":
        return _complex(place, dtype, value)
    return _float(place, dtype, value)


def _integer(place: str, dtype: np.dtype[Any], value: Any) -> npt.NDArray[Any]:
    if isinstance(value, float):
        if not value.is_integer():
            raise _wrong_type(place, dtype, f"{value}, which is not integral")
        value = int(value)
    try:
        integer = operator.index(value)
    except TypeError:
        raise _wrong_type(place, dtype, describe(value)) from None
    limits = np.iinfo(dtype)
    if not limits.min <= integer <= limits.max:
        raise OverflowError(
            f"{place}: {describe(value)} is out of range for {dtype.name}, "
            f"which goes from {limits.min} to {limits.max}"
        )
    return np.array(integer, dtype)


def _float(place: str, dtype: np.dtype[Any], value: Any) -> npt.NDArray[Any]:
    if isinstance(value, _CHARACTERS) or not hasattr(value, "__float__"):
        raise _wrong_type(place, dtype, describe(value))
    number = _convert(float, place, dtype, value)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = np.array(number).astype(dtype)
    if math.isfinite(number) and not np.isfinite(rounded):
        raise OverflowError(
            f"{place}: {number} is out of range for {dtype.name}; pass float('inf') if you mean it"
        )
    return rounded


def _complex(place: str, dtype: np.dtype[Any], value: Any) -> npt.NDArray[Any]:
    # Python 3.10's complex has no __complex__.
    known = isinstance(value, complex) or hasattr(value, "__complex__")
    if isinstance(value, _CHARACTERS) or not (known or hasattr(value, "__float__")):
        raise _wrong_type(place, dtype, describe(value))
    part = np.dtype(f"float{4 * dtype.itemsize}")
    number = _convert(complex, place, dtype, value)
    parts = [_float(place, part, x) for x in (number.real, number.imag)]
    # Set part by part: re + im * 1j would turn (inf, 0) into (inf, nan) and lose -0.0.
    return np.array(parts, dtype=part).view(dtype).reshape(())


def _convert(kind: type[_Number], place: str, dtype: np.dtype[Any], value: Any) -> _Number:
    try:
        return kind(value)
    except OverflowError:
        raise OverflowError(
            f"{place}: {describe(value)} is out of range for {dtype.name}"
        ) from None
    except (TypeError, ValueError):
        raise _wrong_type(place, dtype, describe(value)) from None


def _wrong_type(place: str, dtype: np.dtype[Any], got: str) -> TypeError:
    article = "an" if dtype.name.startswith("int") else "a"
    return TypeError(f"{place}: expected {article} {dtype.name}, got {got}")


def describe(value: Any) -> str:
    """A value and its type in few words, for error messages."""
    if value is None:
        return "None"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print the longest
    text = repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    name = type(value).__name__
    return text if name in text else f"{text} ({name})"
