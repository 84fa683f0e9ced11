"""What an author's `batch_dims` allow: which arrays of a call have such a dimension in front."""

from __future__ import annotations

from collections.abc import Sequence

from jax_callable._dims import Size
from jax_callable._manifest import Dim, Param, Target


def leads(target: Target, param: Param, dim: str) -> bool:
    """Whether an array begins with a dimension, by its declaration."""
    dims = param.dims
    if dims is None and param.role == "output" and target.operands:
        # Its shape is that of the first array, if it can be.
        first = target.operands[0]
        dims = first.dims if first.rank == param.rank else None
    return dims is not None and dims[:1] == (Dim(dim),)


def independent_dim(
    target: Target,
    operand_shapes: Sequence[Sequence[Size]],
    output_shapes: Sequence[Sequence[Size]],
    may_lack: Sequence[bool],
) -> str | None:
    """The dimension along which a call may be made longer or cut into pieces.

    Args:
        target: The target.
        operand_shapes: The shapes of the array inputs and in-outs, without batch axes.
        output_shapes: The shapes of the pure outputs, without batch axes.
        may_lack: For each operand, whether it may be without the dimension.

    Returns:
        One of the target's `batch_dims`, or None. Every result begins with it, and so does every
        operand that must. A target with side effects has none: the number of its runs is seen.
    """
    if target.has_side_effect:
        return None
    operands = list(zip(target.operands, operand_shapes, strict=True))
    outputs = list(zip(target.outputs, output_shapes, strict=True))
    for dim in target.batch_dims:
        sizes = [shape[0] for param, shape in operands if leads(target, param, dim)]
        if (
            sizes
            and all(leads(target, param, dim) for param in target.results)
            # The caller may have chosen shapes that the rule would not give.
            and all(bool(shape[0] == sizes[0]) for _, shape in outputs)
            and all(
                may or leads(target, param, dim)
                for (param, _), may in zip(operands, may_lack, strict=True)
            )
        ):
            return dim
    return None
