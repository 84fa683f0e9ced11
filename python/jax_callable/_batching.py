"""What `jax.vmap` makes of a call.

Sequentially: a scan. By Fold, where the author's `batch_dims` allow it: the batch goes into a
dimension along which the function works independently, and it runs once. By Loop, always right:
the call gets a batch axis in front, and the handler runs the function once for each element.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jax_callable._batch_dims import independent_dim, leads
from jax_callable._dims import Size
from jax_callable._primitive import Call, callable_p, is_explicitly_sharded, without_sharding


def batched(
    operands: Sequence[Any], dims: Sequence[Any], call: Call, batch: tuple[str, ...]
) -> tuple[Sequence[Any], Sequence[int]]:
    """The batching rule of the primitive.

    Args:
        operands: The operands.
        dims: For each of them, where the new batch axis is, or None.
        call: The call.
        batch: The batch axes that it has already, as in `jc.batch`.

    Returns:
        The results, and where the new batch axis is in each.
    """
    method = call.vmap_method
    if method is None:
        raise NotImplementedError(
            f"{call.target.path}: vmap_method is None, so jax.vmap is refused. Pass vmap_method= "
            'in the call, for example "broadcast_all" or "sequential", or set it in Rust'
        )
    is_batched = [dim is not None for dim in dims]
    if method.startswith("sequential"):
        results = _scan(_to(0, operands, dims), batched=tuple(is_batched), call=call, batch=batch)
        return results, (0,) * len(results)
    rank = len(batch[0])
    dim = _fold_dim(call, rank, operands, dims)
    if dim is None:
        results = _loop(_to(0, operands, dims), is_batched, call, batch)
        return results, (0,) * len(results)
    results = _fold(_to(rank, operands, dims), is_batched, dim, call, batch)
    return results, (rank,) * len(results)


def _to(axis: int, operands: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The operands with their new batch axes at one place."""

    def move(operand: Any, dim: int | None) -> Any:
        if dim is None or dim == axis:
            return operand
        order = [i for i in range(operand.ndim) if i != dim]
        return lax.transpose(operand, [*order[:axis], dim, *order[axis:]])

    return [move(operand, dim) for operand, dim in zip(operands, dims, strict=True)]


def _size(axis: int, operands: Sequence[Any], batched: Sequence[bool]) -> Size:
    pairs = zip(operands, batched, strict=True)
    return next(operand.shape[axis] for operand, is_in in pairs if is_in)


def _fold_dim(call: Call, rank: int, operands: Sequence[Any], dims: Sequence[Any]) -> str | None:
    """The dimension into which the batch can go."""
    if any(is_explicitly_sharded(operand) for operand in operands):
        return None  # JAX has a type for a batch axis of its own, not for each merged one.
    shapes = []
    for operand, dim in zip(operands, dims, strict=True):
        # A derivative by a number of Python's brings it here as it is.
        shape = [size for axis, size in enumerate(jnp.shape(operand)) if axis != dim]
        shapes.append(shape[rank:])
    return independent_dim(call.target, shapes, call.output_shapes, [dim is None for dim in dims])


def _fold(
    operands: list[Any], batched: Sequence[bool], dim: str, call: Call, batch: tuple[str, ...]
) -> list[Any]:
    """One run over the batch: element 0's part of the dimension, then element 1's, and so on.

    Args:
        operands: The operands, with the new batch axis behind the axes of `batch`.
        batched: Which of them have it.
        dim: The dimension that takes it in.
        call: The call.
        batch: The axes over which the handler loops already.

    Returns:
        The results, with the batch axis at the same place.
    """
    target, rank = call.target, len(batch[0])
    size = _size(rank, operands, batched)
    longer = [
        _merge(operand if is_in else _tile(operand, rank, size), rank)
        if leads(target, param, dim)
        else operand
        for operand, is_in, param in zip(operands, batched, target.operands, strict=True)
    ]
    whole = dataclasses.replace(
        call,
        output_shapes=tuple((size * shape[0], *shape[1:]) for shape in call.output_shapes),
    )
    own = next(
        operand.shape[rank + is_in]
        for operand, is_in, param in zip(operands, batched, target.operands, strict=True)
        if leads(target, param, dim)
    )
    return [
        lax.reshape(result, (*result.shape[:rank], size, own, *result.shape[rank + 1 :]))
        for result in callable_p.bind(*longer, call=whole, batch=batch)
    ]


def _tile(operand: Any, axis: int, size: Size) -> Any:
    """The operand, as many times, along a new axis."""
    shape = (*operand.shape[:axis], size, *operand.shape[axis:])
    return lax.broadcast_in_dim(operand, shape, [i + (i >= axis) for i in range(operand.ndim)])


def _merge(operand: Any, axis: int) -> Any:
    """The operand with this axis and the next one made one."""
    shape = operand.shape
    return lax.reshape(operand, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _loop(
    operands: list[Any], batched: list[bool], call: Call, batch: tuple[str, ...]
) -> list[Any]:
    """One call with a batch axis in front."""
    size = _size(0, operands, batched)
    for i, param in enumerate(call.target.operands):
        if not batched[i]:
            # Every element of the batch writes its own in-out, but all can read one input.
            in_out = param.role == "in_out"
            operands[i] = lax.broadcast(operands[i], (size if in_out else 1,))
            batched[i] = in_out
    batch = tuple(
        ("1" if is_in else "0") + axes for is_in, axes in zip(batched, batch, strict=True)
    )
    results: list[Any] = callable_p.bind(*operands, call=call, batch=batch)
    return results


# Compiled as one, or an eager call would trace and compile its loop anew each time.
@functools.partial(jax.jit, static_argnames=("batched", "call", "batch"))
def _scan(
    operands: list[Any], *, batched: tuple[bool, ...], call: Call, batch: tuple[str, ...]
) -> list[Any]:
    def body(_: None, batched_slices: list[Any]) -> tuple[None, list[Any]]:
        slices = iter(batched_slices)
        elements = [
            next(slices) if is_in else operand
            for operand, is_in in zip(operands, batched, strict=True)
        ]
        return None, callable_p.bind(*elements, call=call, batch=batch)

    pairs = zip(operands, batched, strict=True)
    xs = [without_sharding(operand, 0) for operand, is_in in pairs if is_in]
    _, results = lax.scan(body, None, xs, unroll=call.vmap_method == "sequential_unrolled")
    scanned: list[Any] = results
    return scanned
