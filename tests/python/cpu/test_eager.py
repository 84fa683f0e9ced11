"""Eager calls compile once for each set of types and scalars."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import bits


def test_the_second_call_compiles_nothing(ops, compilations):
    x = jnp.arange(5.0)
    with compilations() as first:
        ops.saxpy(1.25, x, x)
    assert first.added == 1
    with compilations() as counter:
        for _ in range(5):
            ops.saxpy(1.25, x + 0, x)
            ops.saxpy(y=x, x=x, a=np.float64(1.25))
        np.testing.assert_array_equal(ops.saxpy(1.25, x, 2 * x), 3.25 * np.arange(5))
    # What JAX itself needed for `+` and `*`, at most.
    assert counter.added <= 2


@pytest.mark.parametrize(
    "value",
    [0.0, -0.0, float("nan"), -float("nan"), float("inf"), 1, 1.0, np.float32(0.1), 2**24 + 1],
)
def test_values_that_are_hard_to_compare(ops, compilations, value):
    first = ops.one_float32(value)
    with compilations() as counter:
        for _ in range(3):
            # Another object of the same value.
            again = ops.one_float32(type(value)(np.float64(value)))
            assert bits(again) == bits(first)
    assert counter.added == 0


def test_equal_numbers_of_different_types_share_a_program(ops, compilations):
    ops.one_float64(7)
    values = (7.0, np.int8(7), np.float16(7), np.array(7), jnp.int32(7))
    with compilations() as counter:
        for value in values:
            assert float(ops.one_float64(value)) == 7.0
    assert counter.added == 0


def test_different_zeros_do_not(ops, compilations):
    jax.clear_caches()
    with compilations() as counter:
        for value in (0.0, -0.0, 0.0, -0.0):
            assert np.signbit(ops.one_float64(value)) == np.signbit(value)
    assert counter.added == 2


@pytest.mark.parametrize("values", [[1.0, float("nan"), -0.0], (), [0.5] * 1000])
def test_slices(ops, compilations, values):
    ops.slice_float32(values, len(values))
    with compilations() as counter:
        ops.slice_float32(list(values), len(values))
        ops.slice_float32(np.array(values, np.float32), np.int64(len(values)))
    assert counter.added == 0


def test_options_are_part_of_the_call(ops, compilations):
    for n in (4, 5):
        ops.iota(output_dims=n)
    with compilations() as counter:
        for given, n in ((4, 4), ((5,), 5), ({"out": np.int32(4)}, 4), ([4], 4)):
            assert ops.iota(output_dims=given).shape == (n,)
    assert counter.added == 0


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_eager_vmap(ops, compilations, method):
    x = jnp.ones((3, 4))

    def call():
        return jax.vmap(functools.partial(ops.softmax, vmap_method=method))(x)

    call()
    with compilations() as counter:
        call()
        call()
    assert counter.added == 0


def test_a_new_shape_compiles_once(ops, compilations):
    arrays = [jnp.ones(n) for n in (31, 32)]
    for x in arrays:
        with compilations() as counter:
            ops.cumsum(x)
        assert counter.added == 1
    with compilations() as counter:
        for x in arrays * 3:
            ops.cumsum(x)
    assert counter.added == 0


def test_jit_compiles_once(ops, compilations):
    x = jnp.ones(7)
    program = jax.jit(lambda x: ops.softmax(ops.saxpy(float("nan"), x, x)))
    program(x)
    with compilations() as counter:
        for _ in range(3):
            program(x)
    assert counter.added == 0


def test_a_value_of_rank_0_is_no_part_of_the_program(ops, compilations):
    values = [jnp.int32(n) for n in range(8)]
    ops.increment(values[0])
    with compilations() as counter:
        assert [int(ops.increment(value)) for value in values] == list(range(1, 9))
    assert counter.added == 0
