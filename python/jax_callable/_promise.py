"""The check of what an author promises with `batch_dims`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jax_callable._batch_dims import leads

if TYPE_CHECKING:
    from jax_callable._callable import Callable


class PromiseError(AssertionError):
    """A function does not do what its `batch_dims` promise."""


def check_batch_dims(
    function: Callable, /, *args: Any, seed: int = 0, rtol: float = 0.0, **kwargs: Any
) -> None:
    """Checks an author's promise, `batch_dims`, on examples.

    `jax.vmap` and the partitioning over devices rely on it: where it is broken, their results are
    wrong. The function runs on whole arrays, then on pieces of them along each promised dimension:
    index by index, and in two unequal parts. Each piece must give what the whole gave there, and a
    result without the dimension must be the same each time.

    Args:
        function: A callable of a library.
        *args: Its arguments. In place of an array may be a `jax.ShapeDtypeStruct`, for random
            numbers: small integers, whose sums and products are exact in any order.
        seed: Chooses the random numbers.
        rtol: By how much results may differ, relative to the largest number in the whole.
        **kwargs: Arguments by name.

    Raises:
        PromiseError: The promise is broken; the message names the result and the dimension.
        ValueError: Nothing is promised, or a promised dimension is shorter than 2.
    """
    from jax_callable._arguments import match_arguments  # noqa: PLC0415 - it needs JAX

    target = function.target
    if not target.batch_dims:
        raise ValueError(f"{target.path}: it has no batch_dims, so nothing is promised")
    values = match_arguments(target, args, kwargs)
    rng = np.random.default_rng(seed)
    arrays = {param.name: _array(values[param.name], rng) for param in target.operands}
    whole = _results(function, values | arrays)
    for dim in target.batch_dims:
        cut = [param.name for param in target.operands if leads(target, param, dim)]
        sizes = {arrays[name].shape[0] for name in cut}
        if not sizes or min(sizes) < 2:
            raise ValueError(
                f"{target.path}: nothing can be cut along `{dim}`: give arrays in which it is 2 or "
                "more"
            )
        for piece in _pieces(min(sizes)):
            where = f"run on `{dim}` = {piece.start}..{piece.stop} alone"
            pieces = {name: arrays[name][piece] for name in cut}
            try:
                results = _results(function, values | arrays | pieces)
            except Exception as error:
                raise PromiseError(f"{target.path}: it fails when {where}: {error}") from error
            for param, result, expected in zip(target.results, results, whole, strict=True):
                part = expected[piece] if leads(target, param, dim) else expected
                difference = _difference(part, result, rtol * _largest(expected))
                if difference:
                    raise PromiseError(
                        f"{target.path}: batch_dims promises that `{dim}` is independent, but "
                        f"`{param.name}` depends on more: {where}, it {difference}. Take `{dim}` "
                        "out of batch_dims"
                    )


def _array(value: Any, rng: np.random.Generator) -> Any:
    from jax import ShapeDtypeStruct  # noqa: PLC0415 - the package imports without JAX

    if not isinstance(value, ShapeDtypeStruct):
        return np.asarray(value)
    if np.dtype(value.dtype) == bool:
        return rng.integers(0, 2, value.shape).astype(bool)
    # No zeros, so that most divisions are finite.
    numbers = rng.integers(1, 8, value.shape)
    if not np.issubdtype(value.dtype, np.unsignedinteger):
        numbers *= rng.choice([-1, 1], value.shape)
    return numbers.astype(value.dtype)


def _pieces(size: int) -> Iterator[slice]:
    single = (slice(i, i + 1) for i in range(size))
    middle = (size + 2) // 3
    return itertools.chain(single, (slice(0, middle), slice(middle, size)))


def _results(function: Callable, values: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    results = function(**values)
    return [np.asarray(each) for each in (results if isinstance(results, tuple) else (results,))]


def _largest(array: np.ndarray[Any, Any]) -> float:
    finite = np.abs(_wide(array))
    return float(np.max(finite, initial=0.0, where=np.isfinite(finite)))


def _difference(whole: np.ndarray[Any, Any], piece: np.ndarray[Any, Any], atol: float) -> str:
    """How a piece's result differs from the whole's in its place; empty if it does not."""
    if whole.shape != piece.shape:
        return f"has shape {piece.shape} where the whole has {whole.shape}"
    if atol > 0:
        same = np.isclose(_wide(piece), _wide(whole), rtol=0, atol=atol, equal_nan=True)
    else:
        same = np.equal(piece, whole) | (_is_nan(piece) & _is_nan(whole))
    wrong = np.argwhere(~np.asarray(same))
    if len(wrong) == 0:
        return ""
    index = tuple(wrong[0].tolist())
    return f"has {piece[index]} at {list(index)} where the whole has {whole[index]}"


def _is_nan(array: np.ndarray[Any, Any]) -> Any:
    return np.not_equal(array, array)


def _wide(array: np.ndarray[Any, Any]) -> Any:
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
