"""From a call in JAX to a custom call in HLO.

With `_primitive`, the only module that imports JAX internals.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.errors
import jax.ffi
import numpy as np
from jax._src import core as _core
from jax._src import custom_partitioning_sharding_rule as _sharding_rule
from jax._src.interpreters.mlir import ir_attribute as _ir_attribute
from jax._src.interpreters.mlir import lower_per_platform as _lower_per_platform
from jax._src.interpreters.mlir import lower_with_sharding_in_types as _in_sharding_of_type
from jax._src.lib.mlir import ir as _ir
from jax._src.lib.mlir.dialects import hlo as _hlo
from jax.interpreters import mlir

from jax_callable._dims import Size, environment, scratch_shape
from jax_callable._manifest import Param, Target
from jax_callable._partition import Form, to_cut
from jax_callable._scalars import ArrayAttribute, Attribute, numpy_dtype

if TYPE_CHECKING:
    from jax_callable._primitive import Call

# JAX's lowering platforms, and XLA's names under which handlers are registered.
_XLA_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}

# Of these, XLA makes loops over numbers, and ends the process if there is a call in one.
_OVER_NUMBERS = {
    f"stablehlo.{name}" for name in ("reduce", "reduce_window", "scatter", "select_and_scatter")
}

_PARTITION = "JAX_CALLABLE_PARTITION"
"""If it is 0 when a program is compiled, its calls are not cut into shards."""


def lower(ctx: Any, *operands: Any, call: Call, batch: tuple[str, ...]) -> Any:
    """The lowering rule of the primitive."""
    target = call.target
    platforms = ctx.platforms or ctx.module_context.platforms
    _check_platforms(target, platforms)
    _check_surroundings(target)
    if len({_scratch(target, platform) for platform in platforms}) > 1:
        # One program for several platforms: each gets a call with its own hidden results.
        rules = dict.fromkeys(platforms, lower)
        ctx = ctx.replace(avals_out=list(ctx.avals_out))  # JAX adds lists to it.
        return _lower_per_platform(
            ctx, target.path, rules, None, call.effects, *operands, call=call, batch=batch
        )
    if ctx.module_context.lowering_parameters.for_export and call.xla_name != target.target:
        raise ValueError(
            f"{target.path}: cannot export a call of {call.xla_name}: another build of its library "
            "was loaded first in this process, and only that one has the name that other "
            "processes know. Export from a process that loads the library once"
        )
    scratch = _scratch(target, platforms[0])
    form = Form(
        batch,
        tuple(tuple(operand.shape) for operand in ctx.avals_in),
        tuple(tuple(result.shape) for result in ctx.avals_out),
    )
    if os.environ.get(_PARTITION) != "0":
        num_shards = _num_shards(ctx.module_context)
        form = to_cut(form, call, lambda own: _scratch_shapes(scratch, own, call), num_shards)
    hidden = _scratch_types(scratch, form.own, call)
    if form.num_dims == 0:
        results = _custom_call(ctx, operands, call, form, hidden)
    else:
        inside = ctx.replace(
            avals_in=_reshaped_types(ctx.avals_in, form.operands),
            avals_out=_reshaped_types(ctx.avals_out, form.results),
        )
        results = _custom_call(inside, _reshaped(operands, form.operands), call, form, hidden)
        results = _reshaped(results, [result.shape for result in ctx.avals_out])
    return [
        _in_sharding_of_type(ctx, result, aval)
        for result, aval in zip(results, ctx.avals_out, strict=True)
    ]


def _custom_call(
    ctx: Any, operands: Sequence[Any], call: Call, form: Form, scratch: Sequence[Any]
) -> Any:
    attributes = {name: _ir_attribute(_value(value)) for name, value in call.attributes}
    if any(form.batch):
        attributes["jc.batch"] = _ir_attribute(",".join(form.batch))
    if call.output_dims_given:
        attributes["jc.output_dims"] = _ir_attribute("call")
    ctx = ctx.replace(avals_out=[*ctx.avals_out, *scratch])
    rule = jax.ffi.ffi_lowering(
        call.xla_name,
        backend_config=attributes,
        has_side_effect=call.target.has_side_effect,
        operand_output_aliases={i: out for out, i in enumerate(call.in_out_indices)},
        extra_attributes=_sharding_attributes(ctx, operands, form) if form.num_dims else None,
    )
    results = rule(ctx, *operands)
    return results[: len(results) - len(scratch)]


def _sharding_attributes(ctx: Any, operands: Sequence[Any], form: Form) -> dict[str, Any]:
    """What tells XLA's partitioners how a call may be cut."""
    attributes = {"mhlo.frontend_attributes": _ir_attribute({"num_batch_dims": str(form.num_dims)})}
    if jax.config.jax_use_shardy_partitioner:
        attributes["sdy.sharding_rule"] = _sharding_rule.sdy_sharding_rule_to_mlir(
            _sharding_rule.str_to_sdy_sharding_rule(form.rule),
            [operand.type for operand in operands],
            [
                _ir.RankedTensorType.get(result.shape, mlir.dtype_to_ir_type(result.dtype))
                for result in ctx.avals_out
            ],
        )
    return attributes


def _num_shards(module_context: Any) -> int:
    """Into how many parts XLA may cut an array; 1 where it has nothing to cut."""
    context = module_context.axis_context
    mesh = getattr(context, "mesh", None)
    if mesh is None:
        return getattr(context, "num_devices", 1)  # 1 for jax.pmap's own
    # In jax.shard_map the program of one shard is written, but for axes that it leaves out.
    return math.prod(size for axis, size in mesh.shape.items() if axis not in context.manual_axes)


def _reshaped(values: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
    def reshape(value: Any, shape: Sequence[int]) -> Any:
        old = _ir.RankedTensorType(value.type)
        if old.shape == list(shape):
            return value
        return _hlo.reshape(_ir.RankedTensorType.get(shape, old.element_type), value)

    return [reshape(value, shape) for value, shape in zip(values, shapes, strict=True)]


def _reshaped_types(types: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
    return [
        _core.ShapedArray(tuple(shape), each.dtype)
        for each, shape in zip(types, shapes, strict=True)
    ]


def _scratch(target: Target, platform: str) -> tuple[Param, ...]:
    """The workspaces of the handler for one of JAX's lowering platforms."""
    name = _XLA_PLATFORMS.get(platform, platform)
    scratch = (handler.scratch for handler in target.handlers if handler.platform == name)
    return next(scratch, ())  # Where there is no function, it fails without.


def _scratch_shapes(
    scratch: Sequence[Param], own: Sequence[Sequence[Size]], call: Call
) -> list[tuple[Size, ...]]:
    if not scratch:
        return []
    env = environment(call.target, own, dict(call.attributes))
    return [scratch_shape(each, env) for each in scratch]


def _scratch_types(
    scratch: Sequence[Param], own: Sequence[Sequence[Size]], call: Call
) -> list[Any]:
    """The types of the hidden results: one of each for a whole batch."""
    shapes = _scratch_shapes(scratch, own, call)
    return [
        _core.ShapedArray(shape, numpy_dtype(each.dtype))
        for shape, each in zip(shapes, scratch, strict=True)
    ]


def _value(attribute: Attribute) -> Any:
    if isinstance(attribute, ArrayAttribute):
        return attribute.numpy()
    return attribute if isinstance(attribute, str) else np.int64(attribute)


def _check_platforms(target: Target, platforms: Sequence[str]) -> None:
    """Refuses a program that can only fail.

    A program for several platforms may never come to the one that is absent; the handler there
    raises the same error if it does.
    """
    names = [_XLA_PLATFORMS.get(platform, platform) for platform in platforms]
    absent = target.absent
    if absent and all(name == absent.platform for name in names):
        # The type and the words of what the handler would raise.
        raise jax.errors.JaxRuntimeError(f"FAILED_PRECONDITION: {target.path}: {absent.reason}")
    for name, platform in zip(names, platforms, strict=True):
        if name not in target.platforms and not (absent and name == absent.platform):
            raise NotImplementedError(
                f"{target.path}: no handler for the platform {platform}: Rust functions run on "
                "cpu and cuda. Move the arrays there with jax.device_put"
            )


def _check_surroundings(target: Target) -> None:
    surrounding: Any = _ir.InsertionPoint.current.block.owner.operation
    while surrounding.name != "func.func":
        if surrounding.name in _OVER_NUMBERS:
            raise NotImplementedError(
                f"{target.path}: XLA cannot call a function for each number inside "
                "jax.lax.reduce, jax.lax.reduce_window or `x.at[...].apply`. Use jax.lax.scan or "
                "jax.lax.associative_scan for a reduction, and `x.at[i].set(f(x[i]))` for apply"
            )
        surrounding = surrounding.parent.operation
