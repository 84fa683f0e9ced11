"""NVIDIA Warp's side of the benchmark, where Warp can be imported."""

# No `from __future__ import annotations`: Warp reads them.
from collections.abc import Callable, Iterator
from typing import Any

import warp as wp
from warp import JaxCallableGraphMode, jax_callable

wp.config.quiet = True

Numbers = wp.array(dtype=float)
Pairs = wp.array(dtype=wp.vec2)


@wp.kernel
def scale(s: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i]


@wp.kernel
def scale_pairs(s: float, x: wp.array(dtype=wp.vec2), y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = s * x[i]


@wp.kernel
def scale_in_place(s: float, x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = s * x[i]


@wp.kernel
def scale_pairs_in_place(s: float, x: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    x[i] = s * x[i]


def _scaling(reps: int) -> Callable[..., None]:
    def scaling(a: Numbers, b: Pairs, c: Numbers, d: Pairs, s: float, e: Numbers, f: Pairs):
        for _ in range(reps):
            wp.launch(scale, dim=a.shape, inputs=[s, a], outputs=[e])
            wp.launch(scale_pairs, dim=b.shape, inputs=[s, b], outputs=[f])
            wp.launch(scale_in_place, dim=c.shape, inputs=[s, c])
            wp.launch(scale_pairs_in_place, dim=d.shape, inputs=[s, d])

    return scaling


def calls(scale_by: float, reps: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A call for each graph mode, by its name there."""
    for mode in JaxCallableGraphMode:
        function = jax_callable(
            _scaling(reps), num_outputs=4, in_out_argnames=["c", "d"], graph_mode=mode
        )

        def call(a: Any, b: Any, c: Any, d: Any, function: Any = function) -> Any:
            dims = {"e": a.shape, "f": b.shape[:1]}
            return function(a, b, c, d, scale_by, output_dims=dims)

        yield mode.name, call
