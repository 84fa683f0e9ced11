"""Every element type, there and back."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import DTYPES, FLOAT8, bits, special

pytestmark = pytest.mark.usefixtures("x64")

NUMBERS = [name for name in DTYPES if name != "bool"]
ALL = {**DTYPES, **FLOAT8}


@pytest.mark.parametrize("name", ALL)
def test_every_bit_survives(ops, name):
    copy = getattr(ops, f"copy_{name}")
    values = special(name)
    assert bits(copy(values)) == bits(values)
    assert bits(jax.jit(copy)(jnp.asarray(values))) == bits(values)


@pytest.mark.parametrize("name", ALL)
def test_empty(ops, name):
    empty = np.zeros(0, ALL[name])
    assert bits(getattr(ops, f"copy_{name}")(empty)) == bits(empty)


@pytest.mark.parametrize("name", NUMBERS)
def test_arithmetic(ops, name):
    values = special(name)
    if values.dtype.itemsize > 2 or name == "bfloat16":
        # XLA's threads, in which the function runs, take subnormal numbers for zero.
        values = values[(values == 0) | ~(abs(values) < 1e-30)]
    with np.errstate(over="ignore"):
        expected = (values + values).astype(values.dtype)
    result = np.asarray(getattr(ops, f"twice_{name}")(values))
    assert result.dtype == values.dtype
    if name == "bfloat16":  # older NumPy finds no NaN in it
        result, expected = result.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(result, expected)


def test_booleans(ops):
    values = special("bool")
    assert bits(ops.negate(values)) == bits(~values)


def test_foreign_bytes_are_booleans(ops):
    # JAX takes over memory of NumPy's, in which a true may be any byte but 0.
    values = np.array([0, 1, 2, 255] * 64, np.uint8).view(bool)
    assert bits(ops.negate(values)) == bits(np.array([True, False, False, False] * 64))


def test_several_in_one_call(ops):
    a = np.array([-1, 2], np.int8)
    b = np.array([10, 20], np.uint16)
    c = np.array([0.5, 0.25], DTYPES["bfloat16"])
    d = np.array([True, False])
    e = np.array([1 + 1000j, 2 + 2000j], np.complex64)
    expected = np.array([1109.5, 2022.25], np.float32)
    assert bits(jax.jit(ops.sum_of_kinds)(a, b, c, d, e)) == bits(expected)


@pytest.mark.parametrize("name", ALL)
def test_no_other_type_is_taken(ops, name):
    copy = getattr(ops, f"copy_{name}")
    for other in set(ALL) - {name}:
        values = special(other)
        for call in (copy, jax.jit(copy), jax.vmap(lambda x: copy(x[None]))):
            with pytest.raises(TypeError) as error:
                call(values)
            text = f"fixture.copy_{name}: parameter `x`: expected dtype {name}, got {other}"
            assert str(error.value).startswith(text)


def test_wide_outputs_without_x64(ops):
    jax.config.update("jax_enable_x64", False)
    for name, value in itertools.product(("int64", "float64"), (1, 2**40 + 2**30)):
        result = getattr(ops, f"one_{name}")(value)
        assert bits(result) == bits(np.array(value, name))
