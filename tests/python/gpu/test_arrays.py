"""Shapes, element types, scalars, batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DTYPES = [
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize("name", DTYPES)
def test_element_types(ops, x64, name, numbers):
    copy = ops[f"fixture_cuda.copy_{name}"]
    for length in (1, 1000, 0):
        x = jnp.asarray(numbers(length) % 2 if name == "bool" else numbers(length)).astype(name)
        result = jax.jit(copy)(x)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(result), np.asarray(x))


def test_packed_elements(ops, numbers):
    a, b = numbers(50, 3), numbers(50, 3, start=7)
    np.testing.assert_array_equal(ops.cross(a, b), np.cross(a, b))


def test_declared_shapes(ops, numbers):
    a, b = numbers(5, 7), numbers(7, 3)
    np.testing.assert_array_equal(ops.matmul(a, b), a @ b)


@pytest.mark.parametrize("shapes", [((0, 7), (7, 3)), ((5, 7), (7, 0)), ((5, 0), (0, 3))])
def test_sizes_of_zero(ops, shapes):
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    np.testing.assert_array_equal(ops.matmul(a, b), a @ b)
    np.testing.assert_array_equal(ops.sum(np.ones(0, np.float32)), 0)


def test_an_in_out_beside_an_output(ops, numbers):
    x, y = numbers(100), numbers(100, start=3)
    new_y, z = jax.jit(lambda x, y: ops.saxpy_and_double(2.0, x, y))(x, y)
    np.testing.assert_array_equal(new_y, 2 * x + y)
    np.testing.assert_array_equal(z, 2 * x)


@pytest.mark.parametrize("name", ["negate", "double_by_builder", "copy_by_cudarc"])
def test_other_ways_to_a_kernel(ops, name, numbers):
    factor = {"negate": -1, "double_by_builder": 2, "copy_by_cudarc": 1}[name]
    x = numbers(3000)
    for _ in range(3):
        np.testing.assert_array_equal(jax.jit(ops[f"fixture_cuda.{name}"])(x), factor * x)


def test_scalars_of_all_kinds(ops, x64, numbers):
    x = numbers(100, dtype=np.float64)
    for negate in (False, True):
        result = ops.scalars(1.5, negate, [0.5, 0.25], -4, -300, x)
        expected = 1.5 * x + 0.75 * -4 - 300
        np.testing.assert_array_equal(result, -expected if negate else expected)


def test_a_reduction_under_vmap(ops, numbers):
    x = numbers(3, 4, 50)
    np.testing.assert_array_equal(ops.sum(x[0, 0]), x[0, 0].sum())
    np.testing.assert_array_equal(jax.vmap(ops.sum)(x[0]), x[0].sum(-1))
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(ops.sum)))(x), x.sum(-1))
    inner = jax.vmap(ops.sum, in_axes=1)
    np.testing.assert_array_equal(inner(x[0]), x[0].sum(0))


def test_a_shared_table_under_vmap(ops, numbers):
    a, b = numbers(6, 5, 7), numbers(7, 3)
    result = jax.jit(jax.vmap(ops.matmul, in_axes=(0, None)))(a, b)
    np.testing.assert_array_equal(result, a @ b)


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_an_in_out_under_vmap(ops, method, numbers):
    x, y = numbers(6, 50), numbers(50, start=3)
    f = jax.vmap(lambda x, y: ops.saxpy(2.0, x, y, vmap_method=method), in_axes=(0, None))
    np.testing.assert_array_equal(jax.jit(f)(x, y), 2 * x + y)
