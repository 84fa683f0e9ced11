"""The JAX primitive behind every call, and all that differs between JAX releases.

Nothing outside this module imports JAX internals. Supported: JAX 0.6.0 to 0.12.

A call is one custom call in HLO, batched or not. `jax.vmap` adds batch axes in front of the arrays
and notes in the attribute `jc.batch` which operands have them; an operand without the batch keeps
a size of 1 there instead of being copied. The handler runs the function over the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.errors
import jax.ffi
import numpy as np
from jax._src import core as _core
from jax._src import effects as _effects
from jax._src import xla_bridge as _xla_bridge
from jax._src.interpreters.mlir import ir_attribute as _ir_attribute
from jax._src.interpreters.mlir import lower_per_platform as _lower_per_platform
from jax._src.lib import xla_client as _xla_client
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir, xla

from jax_callable._dims import Size, environment, scratch_shape
from jax_callable._manifest import Param, Target
from jax_callable._scalars import ArrayAttribute, Attribute, numpy_dtype

# JAX's lowering platforms, and XLA's names under which handlers are registered.
_XLA_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}

InconclusiveDimensionOperation = _core.InconclusiveDimensionOperation
"""What JAX raises when the value of a symbolic dimension would decide."""

# The public one is in jax.export, which JAX 0.6.0 cannot import without a package it does not name.
is_symbolic_dim = _core.is_symbolic_dim
"""Whether a size is a symbolic dimension of `jax.export`."""

# The axes over which a value varies inside jax.shard_map moved into a type of their own.
_VARYING_IS_VMA = not hasattr(_core, "ManualAxisType")


@dataclass(frozen=True)
class CallEffect(_effects.Effect):  # type: ignore[misc]
    """Keeps a call with side effects. Exported programs contain the name of this class."""

    def __str__(self) -> str:
        return "jax_callable"


for _allowed in (
    _effects.lowerable_effects,
    _effects.control_flow_allowed_effects,
    _effects.custom_derivatives_allowed_effects,
    _effects.remat_allowed_effects,
):
    _allowed.add_type(CallEffect)
if hasattr(_effects, "partial_eval_kept_effects"):  # from JAX 0.6.1
    _effects.partial_eval_kept_effects.add_type(CallEffect)


@dataclass(frozen=True)
class Call:
    """Everything about a call but its operands.

    Attributes:
        target: What is called.
        xla_name: The name it is registered under in this process.
        attributes: The static scalars, in the order of the parameters.
        output_shapes: The shapes of the pure outputs, without batch axes.
        output_dims_given: Whether the caller gave shapes, so that the handler skips the rule.
        vmap_method: What `jax.vmap` does with the call.
    """

    target: Target
    xla_name: str
    attributes: tuple[tuple[str, Attribute], ...]
    output_shapes: tuple[tuple[Size, ...], ...]
    output_dims_given: bool
    vmap_method: str | None

    def __str__(self) -> str:
        return self.target.path

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.xla_name, self.attributes, self.output_shapes, self.vmap_method))

    def __hash__(self) -> int:
        return self._hash

    @property
    def effects(self) -> frozenset[CallEffect]:
        """The effects of one call."""
        return frozenset([CallEffect()] if self.target.has_side_effect else [])


def bind(call: Call, operands: Sequence[Any]) -> list[Any]:
    """Makes the call: executes it, or adds it to the program being traced.

    Args:
        call: The call.
        operands: The array inputs and in-outs, checked.

    Returns:
        The in-outs, then the outputs.
    """
    results: list[Any] = callable_p.bind(*operands, call=call, batch=("",) * len(operands))
    return results


callable_p = Primitive("jax_callable")
callable_p.multiple_results = True

# Eager calls: JAX keeps one compiled program for each (operand types, call) in a bounded cache,
# and compiles it under jax.disable_jit() too.
callable_p.def_impl(functools.partial(xla.apply_primitive, callable_p))


def _abstract_eval(
    *operands: Any, call: Call, batch: tuple[str, ...]
) -> tuple[list[Any], frozenset[CallEffect]]:
    sizes = _batch_sizes([operand.shape for operand in operands], batch)
    shapes = [
        *(operands[i].shape for i in _in_out_indices(call.target)),
        *((*sizes, *shape) for shape in call.output_shapes),
    ]
    results = [
        _result_type(shape, numpy_dtype(param.dtype), operands)
        for shape, param in zip(shapes, call.target.results, strict=True)
    ]
    return results, call.effects


callable_p.def_effectful_abstract_eval(_abstract_eval)


def _result_type(shape: Sequence[Size], dtype: np.dtype[Any], operands: Sequence[Any]) -> Any:
    """The type of a result: in `jax.shard_map`, it varies over every axis that an operand does."""
    sharding = _core.get_cur_mesh_sharding(jax.sharding.PartitionSpec(*[None] * len(shape)))
    if _VARYING_IS_VMA:
        axes = frozenset().union(*(operand.vma for operand in operands))
        return _core.ShapedArray(shape, dtype, sharding=sharding, vma=axes)
    axes = frozenset().union(*(operand.mat.varying for operand in operands))
    return _core.ShapedArray(
        shape, dtype, sharding=sharding, manual_axis_type=_core.ManualAxisType(varying=axes)
    )


def _in_out_indices(target: Target) -> list[int]:
    return [i for i, param in enumerate(target.operands) if param.role == "in_out"]


def _batch_sizes(shapes: Sequence[Sequence[Size]], batch: tuple[str, ...]) -> tuple[Size, ...]:
    """The size of each batch axis, outermost first."""
    rank = len(batch[0]) if batch else 0
    return tuple(
        next(shape[axis] for shape, has in zip(shapes, batch, strict=True) if has[axis] == "1")
        for axis in range(rank)
    )


def _lowering(ctx: Any, *operands: Any, call: Call, batch: tuple[str, ...]) -> Any:
    target = call.target
    platforms = ctx.platforms or ctx.module_context.platforms
    _check_platforms(target, platforms)
    if len({_scratch(target, platform) for platform in platforms}) > 1:
        # One program for several platforms: each gets a call with its own hidden results.
        rules = dict.fromkeys(platforms, _lowering)
        return _lower_per_platform(
            ctx, target.path, rules, None, call.effects, *operands, call=call, batch=batch
        )
    scratch = _scratch_types(_scratch(target, platforms[0]), ctx.avals_in, call, batch)
    if ctx.module_context.lowering_parameters.for_export and call.xla_name != target.target:
        raise ValueError(
            f"{target.path}: cannot export a call of {call.xla_name}: another build of its library "
            "was loaded first in this process, and only that one has the name that other "
            "processes know. Export from a process that loads the library once"
        )
    attributes = {name: _ir_attribute(_value(value)) for name, value in call.attributes}
    if any(batch):
        attributes["jc.batch"] = _ir_attribute(",".join(batch))
    if call.output_dims_given:
        attributes["jc.output_dims"] = _ir_attribute("call")
    rule = jax.ffi.ffi_lowering(
        call.xla_name,
        backend_config=attributes,
        has_side_effect=target.has_side_effect,
        operand_output_aliases={i: out for out, i in enumerate(_in_out_indices(target))},
    )
    results = rule(ctx.replace(avals_out=[*ctx.avals_out, *scratch]), *operands)
    return results[: len(ctx.avals_out)]


mlir.register_lowering(callable_p, _lowering)


def _scratch(target: Target, platform: str) -> tuple[Param, ...]:
    """The workspaces of the handler for one of JAX's lowering platforms."""
    name = _XLA_PLATFORMS.get(platform, platform)
    scratch = (handler.scratch for handler in target.handlers if handler.platform == name)
    return next(scratch, ())  # Where there is no function, it fails without.


def _scratch_types(
    scratch: Sequence[Param], operands: Sequence[Any], call: Call, batch: tuple[str, ...]
) -> list[Any]:
    """The types of the hidden results: one of each for a whole batch."""
    if not scratch:
        return []
    rank = len(batch[0]) if batch else 0
    shapes = [operand.shape[rank:] for operand in operands]
    env = environment(call.target, shapes, dict(call.attributes))
    return [
        _core.ShapedArray(scratch_shape(each, env), numpy_dtype(each.dtype)) for each in scratch
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


def is_explicitly_sharded(operand: Any) -> bool:
    """Whether the type of an array says over which axes of a mesh it is sharded."""
    sharding = getattr(jax.typeof(operand), "sharding", None)
    return sharding is not None and any(part is not None for part in sharding.spec)


def _refuse_jvp(primals: Any, tangents: Any, *, call: Call, batch: tuple[str, ...]) -> Any:
    raise NotImplementedError(
        f"{call.target.path}: JAX cannot differentiate a Rust function by itself. Wrap the call in "
        "jax.custom_vjp with a rule for its derivative, or cut it out with jax.lax.stop_gradient"
    )


def _refuse_transpose(*args: Any, call: Call, batch: tuple[str, ...]) -> Any:
    raise NotImplementedError(
        f"{call.target.path}: JAX cannot transpose a Rust function. Wrap the call in "
        "jax.custom_vjp with a rule for its derivative"
    )


ad.primitive_jvps[callable_p] = _refuse_jvp
ad.primitive_transposes[callable_p] = _refuse_transpose


def traced_cuda_devices(*, everywhere: bool) -> list[int]:
    """The CUDA devices on which a call that is being traced will run, if nothing else is said.

    Args:
        everywhere: All of this process's, if one of them is the default device.

    Returns:
        Ordinals as CUDA counts them. Empty for an eager call, whose arrays decide, where the
        default device is none of CUDA's, and until JAX has started CUDA, which this never does.
    """
    cuda = _xla_bridge._backends.get("cuda")
    if cuda is None or _core.trace_state_clean():
        return []
    devices = cuda.local_devices()
    default = jax.config.jax_default_device
    if default is None or isinstance(default, str):
        # A platform, or that which JAX prefers: its first device. All have been started.
        default = devices[0] if _xla_bridge.get_backend(default) is cuda else None
    if default not in devices:
        return []
    return [device.local_hardware_id for device in (devices if everywhere else [default])]


def registered_on_cpu(name: str) -> bool:
    """Whether XLA knows a handler of this name on the CPU."""
    return name in _xla_client.custom_call_targets("Host")
