"""Batches of several sizes and forms, and arrays without elements."""

import functools

import jax
import numpy as np
import pytest

METHODS = [
    "broadcast_all",
    "expand_dims",
    "legacy_vectorized",
    "sequential",
    "sequential_unrolled",
]


@pytest.mark.parametrize("name", ["saxpy", "saxpy_uncaptured"])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_sizes(ops, name, size, numbers):
    x, y = numbers(size, 50), numbers(size, 50, start=3)
    f = functools.partial(ops[f"fixture_cuda.{name}"], 2.0)
    for in_axes, expected in {
        (0, 0): 2 * x + y,
        (0, None): 2 * x + y[0],
        (None, 0): 2 * x[0] + y,
    }.items():
        given = [
            array if axis == 0 else array[0] for array, axis in zip((x, y), in_axes, strict=True)
        ]
        batched = jax.jit(jax.vmap(f, in_axes=in_axes))
        for _ in range(3):
            np.testing.assert_array_equal(batched(*given), expected)


@pytest.mark.parametrize("method", METHODS)
def test_methods_for_a_function_that_must_not_be_folded(ops, method, numbers):
    x = numbers(4, 3, 20)
    total = functools.partial(ops.sum, vmap_method=method)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(total)))(x), x.sum(-1))


def test_an_in_out_beside_an_output(ops, numbers):
    x, y = numbers(6, 50), numbers(6, 50, start=3)
    new_y, z = jax.jit(jax.vmap(functools.partial(ops.saxpy_and_double, 2.0)))(x, y)
    np.testing.assert_array_equal(new_y, 2 * x + y)
    np.testing.assert_array_equal(z, 2 * x)


def test_a_batch_inside_a_scan(ops, numbers):
    x, y = numbers(5, 40), numbers(5, 40, start=3)
    step = jax.vmap(functools.partial(ops.saxpy, 0.5))
    f = jax.jit(lambda y: jax.lax.scan(lambda y, _: (step(x, y), y[0, 0]), y, None, 6))
    last, firsts = f(y)
    np.testing.assert_array_equal(last, y + 3 * x)
    np.testing.assert_array_equal(firsts, y[0, 0] + np.arange(6) * 0.5 * x[0, 0])


def test_a_batched_scan(ops, numbers):
    x, y = numbers(5, 40), numbers(5, 40, start=3)

    def run(x, y):
        return jax.lax.fori_loop(0, 4, lambda _, y: ops.saxpy(0.5, x, y), y)

    np.testing.assert_array_equal(jax.jit(jax.vmap(run))(x, y), y + 2 * x)


def test_donated_batches(ops, numbers):
    f = jax.jit(jax.vmap(functools.partial(ops.saxpy, 1.0)), donate_argnums=1)
    x, start = numbers(4, 100), numbers(4, 100, start=3)
    y = jax.device_put(start)
    for _ in range(10):
        given, y = y, f(x, y)
        assert given.is_deleted()
    np.testing.assert_array_equal(y, start + 10 * x)


@pytest.mark.parametrize("name", ["saxpy", "saxpy_uncaptured"])
def test_no_elements(ops, name):
    f = functools.partial(ops[f"fixture_cuda.{name}"], 2.0)
    empty = np.ones(0, np.float32)
    for g in (f, jax.jit(f)):
        for _ in range(2):
            assert g(empty, empty).shape == (0,)
    batch = np.ones((3, 0), np.float32)
    assert jax.jit(jax.vmap(f))(batch, batch).shape == (3, 0)
    # A call without elements beside one with.
    both = jax.jit(lambda x, y: (f(empty, empty), f(x, y)))
    assert np.asarray(both(np.ones(3, np.float32), np.ones(3, np.float32))[1]).tolist() == [3] * 3


def test_one_array_for_two_parameters(ops, numbers):
    a, b = numbers(8, 8), numbers(20, 3)
    np.testing.assert_array_equal(jax.jit(lambda a: ops.matmul(a, a))(a), a @ a)
    np.testing.assert_array_equal(jax.jit(lambda b: ops.cross(b, b))(b), np.zeros((20, 3)))
    new_y, z = jax.jit(lambda x: ops.saxpy_and_double(2.0, x, x))(a[0])
    np.testing.assert_array_equal(new_y, 3 * a[0])
    np.testing.assert_array_equal(z, 2 * a[0])
