"""What `jax.vmap` means, as a Python loop over unbatched calls."""

import jax
import numpy as np

METHODS = [
    "broadcast_all",
    "expand_dims",
    "legacy_vectorized",
    "sequential",
    "sequential_unrolled",
]


def loop(function, in_axes=0, out_axes=0):
    """`jax.vmap(function, in_axes, out_axes)` for arrays, without JAX's batching."""

    def batched(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        pairs = list(zip(args, axes, strict=True))
        sizes = {np.shape(arg)[axis] for arg, axis in pairs if axis is not None}
        (size,) = sizes
        results = [
            function(*(arg if axis is None else np.take(arg, i, axis) for arg, axis in pairs))
            for i in range(size)
        ]
        return jax.tree.map(lambda *each: np.stack(each, out_axes), *results)

    return batched


def check(batched, expected, *args):
    """Compares the results of two functions, exactly: the same code ran on the same numbers."""
    results, wanted = jax.tree.leaves(batched(*args)), jax.tree.leaves(expected(*args))
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        assert result.dtype == want.dtype
        np.testing.assert_array_equal(result, want)


def with_axes(shapes, *levels):
    """Shapes with batch axes added, innermost first.

    Args:
        shapes: The shapes of unbatched arrays.
        levels: For each level, its size, and where its axis is in each array, or None.
    """
    shapes = [list(shape) for shape in shapes]
    for size, axes in levels:
        for shape, axis in zip(shapes, axes, strict=True):
            if axis is not None:
                shape.insert(axis, size)
    return shapes
