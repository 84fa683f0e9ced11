"""Reverse-mode derivatives: the attribute's key `vjp`, in JAX.

`jax.custom_vjp` would do, but for two things: it names nobody when forward mode is asked of it, and
it costs each call that nobody differentiates. So the primitive of calls has a rule of its own: the
call, and beside it its tangents, in a primitive that can only be transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jax_callable._dims import Size
from jax_callable._manifest import Param, Target
from jax_callable._primitive import Call, callable_p, in_varying_axes_of
from jax_callable._scalars import numpy_dtype
from jax_callable.errors import ManifestError

if TYPE_CHECKING:
    from jax_callable._callable import Callable


@dataclass(frozen=True)
class Vjp:
    """How the backward callable of a target is called.

    Attributes:
        backward: The callable.
        arguments: For each of its operands, "operand", "result" or "cotangent" of the forward
            call, and which one.
        derivatives: For each operand of the forward call, which result of the backward one is its
            derivative; None for types without.
    """

    backward: Callable
    arguments: tuple[tuple[str, int], ...]
    derivatives: tuple[int | None, ...]


def link(callables: Iterable[Callable]) -> None:
    """Gives each callable of a library the one that its `vjp` names.

    Raises:
        ManifestError: They do not fit, which the Rust compiler should have refused.
    """
    by_name = {(each.target.crate, each.target.name): each for each in callables}
    for forward in by_name.values():
        name = forward.target.vjp
        if name is not None:
            if name not in by_name:
                raise _misfit(forward.target, f"{'.'.join(name)} is not in the library")
            forward._vjp = _match(forward.target, by_name[name])


def _match(target: Target, backward: Callable) -> Vjp:
    """Matches parameters by their names; `runtime/src/vjp.rs` has the rules."""
    meanings: dict[str, tuple[str, int]] = {}
    types: dict[str, Param] = {}
    for i, param in enumerate(target.results):
        meanings[f"out_{param.name}"] = meanings[param.name] = ("result", i)
        if _has_derivative(param):
            meanings[f"ct_{param.name}"] = ("cotangent", i)
        types |= {f"{prefix}{param.name}": param for prefix in ("out_", "ct_", "")}
    derivatives: dict[str, Param] = {}
    for i, param in enumerate(target.operands):
        meanings[param.name] = ("operand", i)
        if _has_derivative(param):
            derivatives[f"d_{param.name}"] = param
    # A name of the forward callable itself stands for that parameter.
    types |= {param.name: param for param in target.params}

    taken = {}
    for param in backward.target.inputs:
        if param.role == "in_out":  # of an in-out: its cotangent, which becomes its derivative
            owner = derivatives.get(param.name)
            meaning, wanted = meanings.get(f"ct_{owner and owner.name}"), owner
        else:
            meaning, wanted = meanings.get(param.name), types.get(param.name)
        if wanted is None or (meaning is None and wanted.is_array):
            raise _misfit(target, f"`{param.name}` of {backward.target.path} has no meaning")
        _require_type(target, backward.target, param, wanted)
        if meaning is not None:
            taken[param.name] = meaning
    positions = {}
    for i, param in enumerate(backward.target.results):
        if param.name not in derivatives:
            raise _misfit(target, f"`{param.name}` of {backward.target.path} has no meaning")
        _require_type(target, backward.target, param, derivatives[param.name])
        positions[param.name] = i
    if missing := [f"`{name}`" for name in derivatives if name not in positions]:
        raise _misfit(target, f"{backward.target.path} does not return {', '.join(missing)}")
    if not any(kind == "cotangent" for kind, _ in taken.values()):
        raise _misfit(target, f"{backward.target.path} takes no cotangent")
    return Vjp(
        backward,
        tuple(taken[param.name] for param in backward.target.operands),
        tuple(positions.get(f"d_{param.name}") for param in target.operands),
    )


def _has_derivative(param: Param) -> bool:
    return jnp.issubdtype(numpy_dtype(param.dtype), jnp.inexact)


def _require_type(target: Target, backward: Target, param: Param, wanted: Param) -> None:
    found, expected = (
        (each.is_array, each.dtype, each.length, each.rank, each.packed) for each in (param, wanted)
    )
    if found != expected:
        raise _misfit(
            target,
            f"`{param.name}` of {backward.path} is {param}, but `{wanted.name}` of {target.path} "
            f"is {wanted}",
        )


def _misfit(target: Target, reason: str) -> ManifestError:
    return ManifestError(
        f"{target.path}: its vjp does not fit: {reason}; rebuild the library with a released "
        "jax-callable crate"
    )


tangent_p = Primitive("jax_callable_tangent")
tangent_p.multiple_results = True


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Call, batch: tuple[str, ...]
) -> tuple[list[Any], list[Any]]:
    vjp = call.vjp
    if vjp is None:
        raise NotImplementedError(
            f"{call.target.path}: JAX cannot differentiate a Rust function by itself. Name the "
            "callable that computes its derivative in Rust, #[jax_callable(vjp = ...)], wrap the "
            "call in jax.custom_vjp with a rule for its derivative, or cut it out with "
            "jax.lax.stop_gradient"
        )
    results = callable_p.bind(*primals, call=call, batch=batch)
    sources = {"operand": primals, "result": results}
    kept = [sources[kind][i] for kind, i in vjp.arguments if kind != "cotangent"]
    given = tuple(i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    types = [jax.typeof(result).to_tangent_aval() for result in results]
    smooth = [_has_derivative(param) for param in call.target.results]
    rank = len(batch[0])
    moved = tangent_p.bind(
        *kept,
        # Where operands vary over more axes of a mesh than others, all derivatives do.
        *in_varying_axes_of(results[0], [tangents[i] for i in given]),
        call=call,
        batch=batch,
        given=given,
        shapes=tuple(primal.shape[rank:] for primal in primals),
        types=tuple(each for each, is_smooth in zip(types, smooth, strict=True) if is_smooth),
    )
    rest = iter(moved)
    return results, [
        next(rest) if is_smooth else ad.Zero(each)
        for each, is_smooth in zip(types, smooth, strict=True)
    ]


ad.primitive_jvps[callable_p] = _jvp


@tangent_p.def_abstract_eval
def _tangent_types(*_: Any, types: tuple[Any, ...], **__: Any) -> list[Any]:
    return list(types)


def _transpose(
    cotangents: Sequence[Any],
    *arguments: Any,
    call: Call,
    batch: tuple[str, ...],
    given: tuple[int, ...],
    shapes: tuple[tuple[Size, ...], ...],
    types: tuple[Any, ...],
) -> list[Any]:
    vjp = call.vjp
    assert vjp is not None
    kept = iter(arguments)
    incoming = iter([ad.instantiate_zeros(each) for each in cotangents])
    by_result = [
        next(incoming) if _has_derivative(param) else None for param in call.target.results
    ]
    operands = [
        by_result[i] if kind == "cotangent" else next(kept) for kind, i in vjp.arguments
    ]
    outgoing = _derivatives(call, batch, operands, shapes)
    tangents = list(kept)
    return [None] * (len(arguments) - len(tangents)) + [
        outgoing[i] if ad.is_undefined_primal(tangent) else None
        for i, tangent in zip(given, tangents, strict=True)
    ]


ad.primitive_transposes[tangent_p] = _transpose


def _refuse_forward_mode(*_: Any, call: Call, **__: Any) -> Any:
    raise NotImplementedError(
        f"{call.target.path}: forward-mode differentiation (jax.jvp, jax.jacfwd, jax.linearize, "
        "and jax.hessian) is not offered: the vjp of a Rust function is reverse mode. Use "
        "jax.grad, jax.vjp or jax.jacrev"
    )


def _refuse_in_lowering(ctx: Any, *_: Any, call: Call, **__: Any) -> Any:
    _refuse_forward_mode(call=call)


def _refuse_in_vmap(operands: Any, dims: Any, *, call: Call, **__: Any) -> Any:
    _refuse_forward_mode(call=call)


tangent_p.def_impl(_refuse_forward_mode)
mlir.register_lowering(tangent_p, _refuse_in_lowering)
batching.primitive_batchers[tangent_p] = _refuse_in_vmap


def _derivatives(
    call: Call,
    batch: tuple[str, ...],
    operands: Sequence[Any],
    shapes: tuple[tuple[Size, ...], ...],
) -> list[Any]:
    """Calls the backward callable: the derivative of each operand of the forward call, or None.

    Args:
        call: The forward call.
        batch: The batch axes of its operands.
        operands: What the backward callable takes.
        shapes: The shapes of the forward call's operands, without batch axes.
    """
    vjp = call.vjp
    assert vjp is not None
    rank = len(batch[0])
    # Each batch axis is a vmap of its own, over the arrays that have it.
    axes = [batch[i] if kind == "operand" else "1" * rank for kind, i in vjp.arguments]
    operands = [
        lax.squeeze(operand, _axes_without(has))
        for operand, has in zip(operands, axes, strict=True)
    ]

    def element(*operands: Any) -> list[Any]:
        return _call_backward(call, vjp, operands, shapes)

    for axis in reversed(range(rank)):
        element = jax.vmap(element, [0 if has[axis] == "1" else None for has in axes])
    results = element(*operands)
    # What all elements share has the sum of their derivatives.
    return [
        None if i is None else jnp.sum(results[i], _axes_without(has), keepdims=True)
        if "0" in has
        else results[i]
        for i, has in zip(vjp.derivatives, batch, strict=True)
    ]


def _axes_without(batch: str) -> tuple[int, ...]:
    return tuple(axis for axis, has in enumerate(batch) if has == "0")


def _call_backward(
    call: Call, vjp: Vjp, operands: Sequence[Any], shapes: tuple[tuple[Size, ...], ...]
) -> list[Any]:
    target = vjp.backward.target
    attributes = dict(call.attributes)
    scalars = {each.name: attributes[each.name] for each in target.inputs if not each.is_array}
    wanted = {
        target.results[i].name: (param.name, shape)
        for i, param, shape in zip(vjp.derivatives, call.target.operands, shapes, strict=True)
        if i is not None
    }
    # Only where no rule of the author's would say it, for the handler checks rules.
    first = operands[0].shape[: target.operands[0].rank]
    output_dims = {
        output.name: shape
        for output in target.outputs
        for _, shape in [wanted[output.name]]
        if output.dims is None and shape[: output.rank] != first
    }
    chosen = call.vmap_method != call.target.vmap_method
    method = call.vmap_method if chosen else target.vmap_method
    results = vjp.backward._bind(scalars, operands, output_dims or None, method)
    for param, result in zip(target.results, results, strict=True):
        name, shape = wanted[param.name]
        if result.shape != shape:
            raise ValueError(
                f"{target.path}: `{param.name}` has shape {result.shape}, but `{name}` of "
                f"{call.target.path}, whose derivative it is, has shape {shape}"
            )
    return results
