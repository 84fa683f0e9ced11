"""Shapes, element types, scalars, batches."""

import jax
import jax.numpy as jnp
import ml_dtypes
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


FLOAT8 = [
    f"float8_{name}"
    for name in (
        *("e5m2", "e4m3fn", "e4m3b11fnuz", "e5m2fnuz", "e4m3fnuz", "e4m3", "e3m4", "e8m0fnu"),
    )
]


def all_float8(name, *shape):
    return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).reshape(shape or 256)


@pytest.mark.parametrize("name", FLOAT8)
def test_8_bit_floats(ops, name):
    x = all_float8(name)
    for result in (
        jax.jit(ops[f"fixture_cuda.copy_{name}"])(x),
        jax.vmap(ops[f"fixture_cuda.copy_{name}"])(x.reshape(4, 64)),
    ):
        assert result.dtype == x.dtype
        assert np.asarray(result).tobytes() == x.tobytes()


def test_packed_8_bit_floats(ops):
    x = np.concatenate([all_float8("float8_e4m3fn")] * 3).reshape(-1, 3, 2)
    assert np.asarray(ops.copy_packed_float8(x)).tobytes() == x.tobytes()


def test_an_8_bit_float_as_a_kernels_value(ops):
    x = all_float8("float8_e4m3fn")
    result = np.asarray(ops.replace_nan(3.3, x))
    expected = np.where(np.isnan(x.astype(np.float32)), np.float32(3.25), x.astype(np.float32))
    np.testing.assert_array_equal(result.astype(np.float32), expected)


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
