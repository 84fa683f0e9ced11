"""The JAX primitive behind every call, and what differs between JAX releases.

Only this module and `_lowering` import JAX internals. Supported: JAX 0.6.0 to 0.12.

A call is one custom call in HLO, batched or not. `jax.vmap` (see `_batching`) adds batch axes in
front of the arrays and notes in the attribute `jc.batch` which operands have them; an operand
without the batch keeps a size of 1 there instead of being copied. The handler runs the function
over the batch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import lax
from jax._src import core as _core
from jax._src import effects as _effects
from jax._src import source_info_util as _source_info
from jax._src import xla_bridge as _xla_bridge
from jax._src.lib import xla_client as _xla_client
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla

from jax_callable._batch_dims import independent_dim, leads
from jax_callable._dims import Size
from jax_callable._lowering import lower
from jax_callable._manifest import Target
from jax_callable._scalars import Attribute, numpy_dtype

if TYPE_CHECKING:
    from jax_callable._vjp import Vjp

InconclusiveDimensionOperation = _core.InconclusiveDimensionOperation
"""What JAX raises when the value of a symbolic dimension would decide."""

# The public one is in jax.export, which JAX 0.6.0 cannot import without a package it does not name.
is_symbolic_dim = _core.is_symbolic_dim
"""Whether a size is a symbolic dimension of `jax.export`."""

# Newer releases have it in one place, older ones in the other.
_reshard = (
    jax if hasattr(jax, "reshard") else importlib.import_module("jax.experimental.shard")
).reshard

# What JAX says of the place of an operation is where a program calls this package.
_source_info.register_exclusion(str(Path(__file__).parent))

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
        vjp: What differentiates the call; the target decides it.
    """

    target: Target
    xla_name: str
    attributes: tuple[tuple[str, Attribute], ...]
    output_shapes: tuple[tuple[Size, ...], ...]
    output_dims_given: bool
    vmap_method: str | None
    vjp: Vjp | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.target.path

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.xla_name, self.attributes, self.output_shapes, self.vmap_method))

    def __hash__(self) -> int:
        return self._hash

    @property
    def in_out_indices(self) -> list[int]:
        """Which operands are in-outs."""
        return [i for i, each in enumerate(self.target.operands) if each.role == "in_out"]

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
        *(operands[i].shape for i in call.in_out_indices),
        *((*sizes, *shape) for shape in call.output_shapes),
    ]
    leading = _leading_spec(operands, call, batch)
    results = [
        _result_type(shape, numpy_dtype(param.dtype), leading, operands)
        for shape, param in zip(shapes, call.target.results, strict=True)
    ]
    return results, call.effects


callable_p.def_effectful_abstract_eval(_abstract_eval)


def _result_type(
    shape: Sequence[Size], dtype: np.dtype[Any], leading: Sequence[Any], operands: Sequence[Any]
) -> Any:
    """The type of a result: in `jax.shard_map`, it varies over every axis that an operand does."""
    spec = jax.sharding.PartitionSpec(*leading, *[None] * (len(shape) - len(leading)))
    # The mesh of the operands' types; there may be no other.
    meshes = (operand.sharding.mesh for operand in operands)
    mesh = next((mesh for mesh in meshes if not mesh.empty), None)
    mesh = mesh or _core.get_cur_mesh_sharding().mesh
    sharding = jax.sharding.NamedSharding(mesh, spec)
    if _VARYING_IS_VMA:
        axes = frozenset().union(*(operand.vma for operand in operands))
        return _core.ShapedArray(shape, dtype, sharding=sharding, vma=axes)
    axes = frozenset().union(*(operand.mat.varying for operand in operands))
    return _core.ShapedArray(
        shape, dtype, sharding=sharding, manual_axis_type=_core.ManualAxisType(varying=axes)
    )


def in_varying_axes_of(result: Any, arrays: Sequence[Any]) -> list[Any]:
    """The arrays, varying in `jax.shard_map` over every axis that the result of a call does."""
    axes = _varying_axes(result)
    return [_vary(array, tuple(axes - _varying_axes(array))) for array in arrays]


def _varying_axes(array: Any) -> frozenset[Any]:
    aval = jax.typeof(array)
    axes: frozenset[Any] = aval.vma if _VARYING_IS_VMA else aval.mat.varying
    return axes


def _vary(array: Any, axes: tuple[Any, ...]) -> Any:
    if not axes:
        return array
    if hasattr(lax, "pcast"):
        return lax.pcast(array, axes, to="varying")
    return lax.pvary(array, axes)


def in_sharding_of(aval: Any, array: Any) -> Any:
    """The array with the sharding of a type, where mesh axes are explicit."""
    if jax.typeof(array).sharding.spec == aval.sharding.spec:
        return array
    return _reshard(array, aval.sharding)


def _leading_spec(operands: Sequence[Any], call: Call, batch: tuple[str, ...]) -> list[Any]:
    """Over which explicit axes of a mesh results are sharded: as the dimensions they share are.

    JAX gathers an operand that is sharded otherwise, and all other dimensions.
    """
    if not any(is_explicitly_sharded(operand) for operand in operands):
        return []
    rank = len(batch[0])
    owners = [[has[axis] == "1" for has in batch] for axis in range(rank)]
    if rank == 0:
        shapes = [operand.shape for operand in operands]
        dim = independent_dim(call.target, shapes, call.output_shapes, [True] * len(operands))
        if dim is not None:
            owners = [[leads(call.target, param, dim) for param in call.target.operands]]
    spec: list[Any] = []
    for axis, is_owner in enumerate(owners):
        parts = [
            operand.sharding.spec[axis]
            for operand, has in zip(operands, is_owner, strict=True)
            if has
        ]
        spec.append(next((part for part in parts if part not in (None, *spec)), None))
    return spec


def is_explicitly_sharded(array: Any) -> bool:
    """Whether the type of an array says over which axes of a mesh it is sharded."""
    aval = array if isinstance(array, _core.ShapedArray) else jax.typeof(array)
    return any(part is not None for part in aval.sharding.spec)


def without_sharding(array: Any, axis: int) -> Any:
    """The array with one axis whole on every device, as a scan over it must have it."""
    sharding = jax.typeof(array).sharding
    if sharding.spec[axis] is None:
        return array
    spec = [None if i == axis else part for i, part in enumerate(sharding.spec)]
    return _reshard(array, sharding.update(spec=jax.sharding.PartitionSpec(*spec)))


def _batch_sizes(shapes: Sequence[Sequence[Size]], batch: tuple[str, ...]) -> tuple[Size, ...]:
    """The size of each batch axis, outermost first."""
    rank = len(batch[0]) if batch else 0
    return tuple(
        next(shape[axis] for shape, has in zip(shapes, batch, strict=True) if has[axis] == "1")
        for axis in range(rank)
    )


# Newer releases lower equal calls once, in a function of their own, where `lower` would not see
# what is around them.
_in_place: dict[str, Any] = (
    {"cacheable": False}
    if "cacheable" in inspect.signature(mlir.register_lowering).parameters
    else {}
)
mlir.register_lowering(callable_p, lower, **_in_place)


def _batching(
    operands: Sequence[Any], dims: Sequence[Any], *, call: Call, batch: tuple[str, ...]
) -> tuple[Sequence[Any], Sequence[int]]:
    from jax_callable._batching import batched  # noqa: PLC0415 - that module makes calls itself

    return batched(operands, dims, call, batch)


batching.primitive_batchers[callable_p] = _batching


def _refuse_transpose(*args: Any, call: Call, batch: tuple[str, ...]) -> Any:
    raise NotImplementedError(
        f"{call.target.path}: JAX cannot transpose a Rust function. Wrap the call in "
        "jax.custom_vjp with a rule for its derivative"
    )


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
