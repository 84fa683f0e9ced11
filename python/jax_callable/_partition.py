"""How a call is written so that XLA can cut it into shards.

XLA has a partitioner for custom calls that are batches: told `num_batch_dims`, it cuts that many
leading dimensions of all operands and results in the same way, and every device makes the call for
its part. All other dimensions are gathered. What it asks for, and what is done about it here:

- An array of no more dimensions than that is never cut by itself. So the last of the dimensions is
  split in two, and the handler loops over the first half.
- It would cut every operand, also one that all parts need whole, unless that has fewer dimensions.
  So all others get batch axes of size 1 in front, and the whole one has none (`-` in `jc.batch`).
- It pads what does not divide evenly, and a body would see the padding. So only sizes that every
  number of shards divides are offered.
- It forgets that a call has side effects, where XLA otherwise refuses one in a program for several
  devices. So such calls are not offered at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from jax_callable._batch_dims import independent_dim, leads
from jax_callable._dims import Size

if TYPE_CHECKING:
    from jax_callable._primitive import Call

Shape = tuple[Size, ...]


@dataclass(frozen=True)
class Form:
    """How a call is written down: as it is, or so that XLA can cut it.

    Attributes:
        batch: The value of `jc.batch`.
        operands: The shapes of the operands.
        results: The shapes of the results.
        num_dims: How many leading dimensions may be cut.
        rule: Which dimensions are cut together, in the notation of JAX's sharding rules. Results
            for scratch come last.
    """

    batch: tuple[str, ...]
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    num_dims: int = 0
    rule: str = ""

    @property
    def rank(self) -> int:
        """The number of batch axes."""
        return max(map(_rank, self.batch), default=0)

    @property
    def own(self) -> list[Shape]:
        """The shapes of the operands as the body sees them."""
        pairs = zip(self.operands, self.batch, strict=True)
        return [shape[_rank(axes) :] for shape, axes in pairs]


def _rank(axes: str) -> int:
    return 0 if axes == "-" else len(axes)


def to_cut(
    form: Form, call: Call, scratch: Callable[[Sequence[Shape]], Sequence[Shape]], num_shards: int
) -> Form:
    """Writes a call so that XLA can cut its batch, or a dimension that the author promised.

    Args:
        form: The call as it is.
        call: What is called.
        scratch: The shapes of its workspaces, from the shapes that the body sees.
        num_shards: The number of parts into which XLA cuts arrays, or a multiple of it.

    Returns:
        The same form if the call must stay whole.
    """
    shapes = (*form.operands, *form.results)
    is_open = any(not isinstance(size, int) for shape in shapes for size in shape)
    if num_shards == 1 or not form.operands or is_open or call.target.has_side_effect:
        return form
    is_cut, num_dims = _cut(form, call, num_shards)
    if num_dims == 0:
        return form
    own, pieces = form.own, form.own
    if form.rank == 0:
        pieces = _each(lambda shape: (shape[0] // num_shards, *shape[1:]), own, is_cut)
    lowest = min(len(shape) for shape, cut in zip(form.operands, is_cut, strict=True) if cut)
    if lowest <= num_dims or scratch(own) != scratch(pieces):
        own, at = pieces, num_dims - 1
        form = _with_axes(form, "1", is_cut, lambda shape: _split(shape, at, num_shards))
    whole = [shape for shape, cut in zip(own, is_cut, strict=True) if not cut]
    highest = max(map(len, (*whole, *scratch(own))), default=0)
    if highest >= num_dims:
        ones = highest + 1 - num_dims
        num_dims += ones
        form = _with_axes(form, "1" * ones, is_cut, lambda shape: (1,) * ones + shape)
    if form.rank > 0:
        axes = [axes if cut else "-" for axes, cut in zip(form.batch, is_cut, strict=True)]
        operands = [
            shape if cut else mine
            for shape, mine, cut in zip(form.operands, own, is_cut, strict=True)
        ]
        form = dataclasses.replace(form, batch=tuple(axes), operands=tuple(operands))
    rule = _rule(num_dims, form, is_cut, scratch(own))
    return dataclasses.replace(form, num_dims=num_dims, rule=rule)


def _cut(form: Form, call: Call, num_shards: int) -> tuple[list[bool], int]:
    """Which operands can be cut, and along how many leading dimensions."""
    if form.rank > 0:
        is_cut = ["1" in axes for axes in form.batch]
        sizes = form.results[0][: form.rank]
        return is_cut, _num_cut_axes(form.batch, is_cut, sizes, num_shards)
    anywhere = [True] * len(form.operands)
    dim = independent_dim(call.target, form.operands, call.output_shapes, anywhere)
    if dim is None:
        return anywhere, 0
    is_cut = [leads(call.target, param, dim) for param in call.target.operands]
    return is_cut, int(_divides(num_shards, form.results[0][0]))


def _num_cut_axes(
    batch: Sequence[str], is_cut: Sequence[bool], sizes: Sequence[Size], num_shards: int
) -> int:
    """How many of the outermost batch axes can be cut: all operands with any axis have these."""
    for axis, size in enumerate(sizes):
        everywhere = all(axes[axis] == "1" for axes, cut in zip(batch, is_cut, strict=True) if cut)
        if not (everywhere and _divides(num_shards, size)):
            return axis
    return len(sizes)


def _divides(num_shards: int, size: Size) -> bool:
    return bool(size > 0 and size % num_shards == 0)


def _split(shape: Shape, at: int, num_shards: int) -> Shape:
    return (*shape[:at], num_shards, shape[at] // num_shards, *shape[at + 1 :])


def _each(
    change: Callable[[Shape], Shape], shapes: Iterable[Shape], is_cut: Sequence[bool]
) -> list[Shape]:
    return [change(shape) if cut else shape for shape, cut in zip(shapes, is_cut, strict=True)]


def _with_axes(
    form: Form, axes: str, is_cut: Sequence[bool], change: Callable[[Shape], Shape]
) -> Form:
    """The form with further batch axes in front, where results and operands that are cut change."""
    return Form(
        tuple(axes + each for each in form.batch),
        tuple(_each(change, form.operands, is_cut)),
        tuple(change(shape) for shape in form.results),
    )


def _rule(num_dims: int, form: Form, is_cut: Sequence[bool], scratch: Sequence[Shape]) -> str:
    own = count()

    def factors(shape: Shape, cut: bool) -> str:
        return " ".join(
            f"cut{axis}" if cut and axis < num_dims else f"own{next(own)}"
            for axis in range(len(shape))
        )

    left = [factors(shape, cut) for shape, cut in zip(form.operands, is_cut, strict=True)]
    right = [factors(shape, True) for shape in form.results]
    right += [factors(shape, False) for shape in scratch]
    return f"{', '.join(left)} -> {', '.join(right)}"
