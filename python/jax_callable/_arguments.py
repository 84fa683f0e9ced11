"""Checks on the arguments of a call. They run at trace time, before anything is compiled."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jax_callable._dims import Environment, Size, output_shape
from jax_callable._manifest import Param, Target
from jax_callable._primitive import is_symbolic_dim
from jax_callable._scalars import Attribute, describe, encode, numpy_dtype

_I64_MAX = 2**63 - 1


def match_arguments(
    target: Target, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Gives each input its argument.

    Raises:
        TypeError: Arguments are missing, given twice, too many or of unknown names.
    """
    names = [param.name for param in target.inputs]
    if len(args) > len(names):
        raise TypeError(
            f"{target.path}: takes {_count(len(names), 'argument')} ({', '.join(names)}), "
            f"got {len(args)}"
        )
    values = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in values:
            raise TypeError(f"{target.path}: got two values for parameter `{name}`")
        if name not in names:
            known = ", ".join([*names, "output_dims", "vmap_method"])
            reason = (
                f"`{name}` is an output: it is returned, not passed"
                if name in {output.name for output in target.outputs}
                else f"unknown keyword `{name}`"
            )
            raise TypeError(f"{target.path}: {reason}; the parameters are {known}")
        values[name] = value
    missing = [f"`{name}`" for name in names if name not in values]
    if missing:
        kind = "parameter" if len(missing) == 1 else "parameters"
        raise TypeError(f"{target.path}: missing {kind} {', '.join(missing)}")
    return {name: values[name] for name in names}


def static_scalars(target: Target, values: Mapping[str, Any]) -> dict[str, Attribute]:
    """Checks and encodes the static scalars, by name."""
    attributes = {}
    for param in target.inputs:
        if not param.is_array:
            value = values[param.name]
            _refuse_traced(target, param, value)
            attributes[param.name] = encode(target.path, param, value)
    return attributes


def array_operands(target: Target, values: Mapping[str, Any]) -> list[Any]:
    """Checks dtype, rank and packed dimensions of the array inputs and in-outs."""
    return [_operand(target, param, values[param.name]) for param in target.operands]


def output_shapes(target: Target, env: Environment, output_dims: Any) -> list[tuple[Size, ...]]:
    """The shapes of the pure outputs, packed dimensions included.

    Args:
        target: The target.
        env: The dimensions of the inputs.
        output_dims: The option of the call: an int or a sequence for all outputs, a dict by
            output name, or None.

    Raises:
        TypeError: A size is not an integer.
        ValueError: A name is no output's, a size is negative, or a shape does not fit its output.
    """
    given = _given_dims(target, output_dims)
    return [
        _fit(target, output, given[output.name])
        if output.name in given
        else (*output_shape(target, output, env), *output.packed)
        for output in target.outputs
    ]


def _refuse_traced(target: Target, param: Param, value: Any) -> None:
    remedy = (
        "To pass a value that is only known at run time, declare the parameter as an array of "
        "rank 0 in Rust"
    )
    place = f"{target.path}: parameter `{param.name}`"
    elements = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(element, jax.core.Tracer) for element in elements):
        raise TypeError(
            f"{place}: a static {param.dtype} must be known when the call is traced, got a traced "
            "value. Use a Python or NumPy value, or mark it static (jax.jit's static_argnames, "
            f"jax.vmap's in_axes=None). {remedy}"
        )
    if any(is_symbolic_dim(element) for element in elements):
        raise TypeError(
            f"{place}: a static {param.dtype} cannot be the symbolic dimension {value}. {remedy}"
        )


def _operand(target: Target, param: Param, value: Any) -> Any:
    place = f"{target.path}: parameter `{param.name}`"
    if isinstance(value, np.generic):
        value = np.asarray(value)
    elif not isinstance(value, jax.Array) and hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    dtype = numpy_dtype(param.dtype)
    if not isinstance(value, jax.Array | np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{place}: expected a {param} array, got {describe(value)}{_hint(dtype, value)}"
        )
    if value.dtype != dtype:
        raise TypeError(f"{place}: expected dtype {dtype.name}, got {value.dtype}{_x64(dtype)}")
    if isinstance(value, np.ndarray) and jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise TypeError(
            f"{place}: JAX would narrow this NumPy array of {dtype.name} to "
            f"{jax.dtypes.canonicalize_dtype(dtype)}{_x64(dtype)}"
        )
    shape = tuple(value.shape)
    rank = param.rank + len(param.packed)
    if len(shape) != rank:
        packed = f" ({param.rank} + {len(param.packed)} packed)" if param.packed else ""
        raise TypeError(f"{place}: expected rank {rank}{packed}, {param}; got shape {shape}")
    if shape[param.rank :] != param.packed:
        raise TypeError(
            f"{place}: expected the trailing dimensions {param.packed}, {param}; got shape {shape}"
        )
    return value


def _hint(dtype: np.dtype[Any], value: Any) -> str:
    if isinstance(value, bool | int | float | complex | list | tuple):
        name = "bool_" if dtype.kind == "b" else dtype.name
        return f"; make an array of it: jnp.asarray(..., dtype=jnp.{name})"
    if isinstance(value, jax.ShapeDtypeStruct):
        return "; to trace with shapes only, use jax.eval_shape or jax.jit(...).lower"
    return ""


def _x64(dtype: np.dtype[Any]) -> str:
    if jax.dtypes.canonicalize_dtype(dtype) == dtype:
        return ""
    return (
        ". JAX makes 64-bit types only when asked: "
        "jax.config.update('jax_enable_x64', True), before the first array"
    )


def _given_dims(target: Target, output_dims: Any) -> dict[str, Any]:
    outputs = [output.name for output in target.outputs]
    if output_dims is None:
        return {}
    if not outputs:
        raise ValueError(f"{target.path}: output_dims is given, but no output needs a shape")
    if not isinstance(output_dims, Mapping):
        return dict.fromkeys(outputs, output_dims)
    for name in output_dims:
        if name in {param.name for param in target.in_outs}:
            raise ValueError(
                f"{target.path}: output_dims: `{name}` is an in-out, which keeps its own shape"
            )
        if name not in outputs:
            raise ValueError(
                f"{target.path}: output_dims: no output is named {name!r}; "
                f"the outputs are {', '.join(outputs)}"
            )
    return dict(output_dims)


def _fit(target: Target, output: Param, given: Any) -> tuple[Size, ...]:
    place = f"{target.path}: output_dims of `{output.name}`"
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = tuple(given)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        sizes = tuple(_size(place, size) for size in given)
    else:
        sizes = (_size(place, given),)
    if len(sizes) == output.rank:
        return (*sizes, *output.packed)
    # JAX's convention counts the dimensions inside the elements, the author's does not.
    if len(sizes) == output.rank + len(output.packed) and sizes[output.rank :] == output.packed:
        return sizes
    accepted = _count(output.rank, "dimension")
    if output.packed:
        accepted += f", or {output.rank + len(output.packed)} ending in {output.packed}"
    raise ValueError(f"{place}: expected {accepted} ({output}), got {sizes}")


def _size(place: str, size: Any) -> Size:
    if isinstance(size, jax.core.Tracer):
        raise TypeError(f"{place}: sizes must be known when the call is traced, got a traced value")
    if is_symbolic_dim(size):
        return size
    if isinstance(size, bool | np.bool_):
        raise ValueError(f"{place}: a size must be an integer, got {size}")  # noqa: TRY004
    try:
        value = operator.index(size)
    except TypeError:
        raise TypeError(f"{place}: a size must be an integer, got {describe(size)}") from None
    if value < 0:
        raise ValueError(f"{place}: a size cannot be negative, got {value}")
    if value > _I64_MAX:
        raise OverflowError(f"{place}: {value} is out of the range of 64-bit integers")
    return value


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
