"""Reverse-mode derivatives: the attribute's key `vjp`, in JAX.

`jax.custom_vjp` would do, but for two things: it names nobody when forward mode is asked of it, and
it costs each call that nobody differentiates. So the primitive of calls has a rule of its own: the
call, and beside it its tangents, in a primitive that can only be transposed.
"""

from __future__ import annotations

import functools
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
from jax_callable._primitive import Call, callable_p, in_sharding_of, in_varying_axes_of
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
        smooth: The results of the forward call whose cotangents the backward one takes. The others
            count as constants.
    """

    backward: Callable
    arguments: tuple[tuple[str, int], ...]
    derivatives: tuple[int | None, ...]
    smooth: tuple[int, ...]


def link(callables: Iterable[Callable]) -> None:
    """Gives each callable of a library the one that its `vjp` names.

    Raises:
        ManifestError: A callable that is named is not in the library.
    """
    by_name = {(each.target.crate, each.target.name): each for each in callables}
    for forward in by_name.values():
        name = forward.target.vjp
        if name is None:
            continue
        if name not in by_name:
            raise ManifestError(
                f"{forward.target.path}: its vjp, {'.'.join(name)}, is not in the library; keep "
                f"it there with jax_callable::link!({name[0]});"
            )
        forward._vjp = _match(forward.target, by_name[name])


def _match(target: Target, backward: Callable) -> Vjp:
    """Finds parameters by their names.

    The Rust compiler has checked that they fit; `runtime/src/vjp.rs` has the rules.
    """
    results = {param.name: i for i, param in enumerate(target.results)}
    meanings = {f"out_{name}": ("result", i) for name, i in results.items()}
    meanings |= {f"ct_{name}": ("cotangent", i) for name, i in results.items()}
    # A name of the forward callable itself is that parameter: of an in-out, before the call.
    meanings |= {name: ("result", i) for name, i in results.items()}
    meanings |= {param.name: ("operand", i) for i, param in enumerate(target.operands)}
    # An in-out is a cotangent that becomes a derivative.
    arguments = [
        ("cotangent", results[param.name.removeprefix("d_")])
        if param.role == "in_out"
        else meanings[param.name]
        for param in backward.target.operands
    ]
    returned = {param.name: i for i, param in enumerate(backward.target.results)}
    derivatives = [returned.get(f"d_{param.name}") for param in target.operands]
    smooth = sorted({i for kind, i in arguments if kind == "cotangent"})
    return Vjp(backward, tuple(arguments), tuple(derivatives), tuple(smooth))


def _has_derivative(param: Param) -> bool:
    return jnp.issubdtype(numpy_dtype(param.dtype), jnp.inexact)


@dataclass(frozen=True)
class Tangents:
    """What is known of the tangents of a call: all but their values.

    Attributes:
        call: The call.
        batch: The batch axes of its operands.
        given: The operands whose tangents are not zero.
        shapes: The shapes of all operands, without batch axes.
        types: JAX's types of the tangents of results, of those that are smooth.
    """

    call: Call
    batch: tuple[str, ...]
    given: tuple[int, ...]
    shapes: tuple[tuple[Size, ...], ...]
    types: tuple[Any, ...]


tangent_p = Primitive("jax_callable_tangent")
tangent_p.multiple_results = True


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Call, batch: tuple[str, ...]
) -> tuple[list[Any], list[Any]]:
    if call.vjp is None and any(map(_has_derivative, call.target.results)):
        raise NotImplementedError(
            f"{call.target.path}: JAX cannot differentiate a Rust function by itself. Name the "
            "callable that computes its derivative in Rust, #[jax_callable(vjp = ...)], wrap the "
            "call in jax.custom_vjp, in forward mode in jax.custom_jvp, with a rule for its "
            "derivative, or cut it out with jax.lax.stop_gradient"
        )
    results = callable_p.bind(*primals, call=call, batch=batch)
    moved = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    if call.vjp is None:
        return results, moved
    sources = {"operand": primals, "result": results}
    kept = [sources[kind][i] for kind, i in call.vjp.arguments if kind != "cotangent"]
    given = tuple(i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    smooth = tangent_p.bind(
        *kept,
        # Where operands vary over more axes of a mesh than others, all derivatives do.
        *in_varying_axes_of(results[0], [tangents[i] for i in given]),
        of=Tangents(
            call=call,
            batch=batch,
            given=given,
            # A number of Python's, by which somebody differentiates, has no shape of its own.
            shapes=tuple(jnp.shape(primal)[len(batch[0]) :] for primal in primals),
            types=tuple(moved[i].aval for i in call.vjp.smooth),
        ),
    )
    for i, tangent in zip(call.vjp.smooth, smooth, strict=True):
        moved[i] = tangent
    return results, moved


ad.primitive_jvps[callable_p] = _jvp


def _tangent_types(*_: Any, of: Tangents) -> list[Any]:
    return list(of.types)


tangent_p.def_abstract_eval(_tangent_types)


def _transpose(cotangents: Sequence[Any], *arguments: Any, of: Tangents) -> list[Any]:
    vjp = _vjp(of)
    kept = iter(arguments)
    incoming = dict(zip(vjp.smooth, map(ad.instantiate_zeros, cotangents), strict=True))
    operands = [incoming[i] if kind == "cotangent" else next(kept) for kind, i in vjp.arguments]
    outgoing = _derivatives(of, operands)
    tangents = list(kept)
    return [None] * (len(arguments) - len(tangents)) + [
        in_sharding_of(tangent.aval, outgoing[i]) if ad.is_undefined_primal(tangent) else None
        for i, tangent in zip(of.given, tangents, strict=True)
    ]


ad.primitive_transposes[tangent_p] = _transpose


def _refuse_forward_mode(*_: Any, of: Tangents) -> Any:
    raise NotImplementedError(
        f"{of.call.target.path}: forward-mode differentiation (jax.jvp, jax.jacfwd, jax.linearize, "
        "jax.hessian) is not offered: the vjp of a Rust function is reverse mode. Use jax.grad, "
        "jax.vjp or jax.jacrev, or wrap the call in jax.custom_jvp"
    )


# Reverse mode transposes the primitive before any of these.
tangent_p.def_impl(_refuse_forward_mode)
mlir.register_lowering(tangent_p, _refuse_forward_mode)
batching.primitive_batchers[tangent_p] = _refuse_forward_mode
ad.primitive_jvps[tangent_p] = _refuse_forward_mode


def _vjp(of: Tangents) -> Vjp:
    assert of.call.vjp is not None  # or there would be no tangents
    return of.call.vjp


def _derivatives(of: Tangents, operands: Sequence[Any]) -> list[Any]:
    """Calls the backward callable: the derivative of each operand of the forward call, or None.

    Args:
        of: The forward call.
        operands: What the backward callable takes, batch axes included.
    """
    vjp, batch = _vjp(of), of.batch
    rank = len(batch[0])
    # Each batch axis is a vmap of its own, over the arrays that have it.
    axes = [batch[i] if kind == "operand" else "1" * rank for kind, i in vjp.arguments]
    operands = [
        lax.squeeze(operand, _axes_without(has))
        for operand, has in zip(operands, axes, strict=True)
    ]
    backward = functools.partial(_call_backward, of)
    for axis in reversed(range(rank)):
        backward = jax.vmap(backward, [0 if has[axis] == "1" else None for has in axes])
    results = backward(*operands)
    # What elements of the batch share has the sum of their derivatives.
    return [
        None if i is None else _summed(results[i], _axes_without(has))
        for i, has in zip(vjp.derivatives, batch, strict=True)
    ]


def _axes_without(batch: str) -> tuple[int, ...]:
    return tuple(axis for axis, has in enumerate(batch) if has == "0")


def _summed(array: Any, axes: tuple[int, ...]) -> Any:
    return jnp.sum(array, axes, keepdims=True) if axes else array


def _call_backward(of: Tangents, *operands: Any) -> list[Any]:
    call, vjp = of.call, _vjp(of)
    target = vjp.backward.target
    attributes = dict(call.attributes)
    scalars = {each.name: attributes[each.name] for each in target.inputs if not each.is_array}
    wanted = {
        target.results[i].name: (param.name, shape)
        for i, param, shape in zip(vjp.derivatives, call.target.operands, of.shapes, strict=True)
        if i is not None
    }
    # Only where the default rule does not say it, for the handler checks rules.
    first = operands[0].shape[: target.operands[0].rank]
    output_dims = {
        output.name: wanted[output.name][1]
        for output in target.outputs
        if output.dims is None and wanted[output.name][1][: output.rank] != first
    }
    # What was chosen for the forward call is meant for both.
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
