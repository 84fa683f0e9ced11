"""Numbers, twins in jax.numpy and comparisons for tests of derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

x = np.linspace(-1, 1.5, 5, dtype=np.float32)
batch = np.stack([x, 2 * x, -x])
matrix = np.arange(12, dtype=np.float32).reshape(3, 4) / 7 - 1
offset = np.arange(3, dtype=np.int32)
vector = np.array([0.5, -1, 2, 0.25], np.float32)
power = np.float32(1.5)


def close(function, twin, *args, tolerance=3e-5):
    """Compares all results of two functions."""
    ours, theirs = jax.tree.leaves(function(*args)), jax.tree.leaves(twin(*args))
    assert len(ours) == len(theirs)
    for result, wanted in zip(ours, theirs, strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, tolerance, tolerance)


def loss(function):
    """A function with one number as its value, whose derivative depends on that of each result."""

    def of(*args):
        results = jax.tree.leaves(function(*args))
        return sum(jnp.sum(jnp.sin(result) * (i + 1)) for i, result in enumerate(results))

    return of


def several(matrix, offset, vector, power):
    product = 2.5 * (matrix @ vector) * power + offset
    return product, jnp.sum(vector**2), jnp.int32(vector.size)
