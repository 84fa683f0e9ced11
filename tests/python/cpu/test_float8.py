"""8-bit floats: the conversions in Rust against those of ml_dtypes."""

import jax
import numpy as np
import pytest
from data import FLOAT8, bits, special


@pytest.fixture(params=FLOAT8)
def name(request):
    return request.param


def same(result, expected):
    """Compares bit by bit, but for what a NaN looks like."""
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.dtype == expected.dtype
    as_floats = [np.isnan(array.astype(np.float32)) for array in (result, expected)]
    np.testing.assert_array_equal(*as_floats)
    numbers = [array[~as_floats[0]] for array in (result, expected)]
    assert bits(numbers[0]) == bits(numbers[1])


def test_every_value_as_a_float32(ops, name):
    values = special(name)
    same(ops[f"fixture.from_{name}"](values), values.astype(np.float32))


def float32s(name):
    """All values, what lies half-way between neighbours, and what is next to all of these."""
    values = special(name).astype(np.float32)
    values = np.unique(values[np.isfinite(values)]).astype(np.float64)
    middles = (values[1:] + values[:-1]) / 2
    beyond = values[-1] + (values[-1] - values[-2]) * np.array([0.25, 0.5, 0.75, 1, 2])
    largest = np.finfo(np.float32).max
    beyond = beyond[beyond <= largest]
    exact = np.concatenate([values, middles, beyond]).astype(np.float32)
    near = [np.nextafter(exact, np.float32(side)) for side in (-np.inf, np.inf)]
    more = np.array([np.inf, np.nan, 0, 1e-45, 1e-40, 1.2e-38, largest], np.float32)
    every = np.concatenate([exact, *near, more])
    return np.concatenate([every, -every])


def test_rounding(ops, name):
    values = float32s(name)
    with np.errstate(all="ignore"):
        expected = values.astype(FLOAT8[name])
    same(ops[f"fixture.to_{name}"](values), expected)


def test_rounding_of_random_bits(ops, name):
    random = np.random.default_rng(3)
    values = random.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    # Most of those are far away from these types' numbers.
    near = np.ldexp(random.uniform(-2, 2, 200_000), random.integers(-20, 20, 200_000))
    values = np.concatenate([values, near.astype(np.float32)])
    with np.errstate(all="ignore"):
        expected = values.astype(FLOAT8[name])
    same(ops[f"fixture.to_{name}"](values), expected)


def test_under_jit_vmap_and_scan(ops, name):
    copy = ops[f"fixture.copy_{name}"]
    values = special(name).reshape(4, 64)
    # XLA's own loops give all NaNs one code.
    same(jax.jit(jax.vmap(copy))(values), values)
    same(jax.vmap(lambda x: copy(x, vmap_method="sequential"))(values), values)
    same(jax.lax.scan(lambda _, x: (None, copy(x)), None, values)[1], values)
