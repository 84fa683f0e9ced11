"""In-outs: written in place, and never seen to be."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import bits


def aligned(values, dtype=np.float32):
    """A NumPy array in memory that JAX may take over without a copy."""
    memory = np.zeros(len(values) * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + len(values) * np.dtype(dtype).itemsize].view(dtype)
    array[:] = values
    return array


def mixed_arguments():
    a, b = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    c, d = np.array([1, 2], np.int32), np.array([100, 200], np.int32)
    return a, b, c, d


def test_in_outs_come_first_then_outputs(ops):
    a, b, c, d = mixed_arguments()
    for function in (ops.mixed, jax.jit(ops.mixed, static_argnums=0)):
        result = function(0.5, a, b, c, d)
        assert type(result) is tuple
        new_b, new_d, e = result
        assert bits(new_b) == bits(b + 0.5 * a)
        assert bits(new_d) == bits(d + c)
        assert bits(e) == bits(new_b[:, None] - new_d.astype(np.float32))


def test_each_in_out_is_aliased_to_its_result(ops):
    lowered = jax.jit(functools.partial(ops.mixed, 2.0)).lower(*mixed_arguments())
    (call,) = [line for line in lowered.as_text().splitlines() if "custom_call" in line]
    for result, operand in ((0, 1), (1, 3)):
        assert f"output_tuple_indices = [{result}], operand_index = {operand}," in call
    assert call.count("output_operand_alias<") == 2


@pytest.mark.parametrize("values", [[1, 2, 3], [1] * 100_000])
def test_the_callers_arrays_stay(ops, values):
    for x in (jnp.asarray(values, jnp.float32), aligned(values)):
        before = bits(x)
        for function in (ops.add_to, jax.jit(ops.add_to)):
            np.testing.assert_array_equal(function(x, x), 2 * np.asarray(values))
            assert bits(x) == before


def test_both_in_outs_may_be_the_same_array(ops):
    x = jnp.arange(3.0)
    for swapped in ops.swap(x, x), jax.jit(lambda x: ops.swap(x, x))(x):
        for each in swapped:
            np.testing.assert_array_equal(each, [0, 1, 2])
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_in_outs_only(ops):
    x, y = jnp.arange(3.0), jnp.arange(3.0) + 10
    for _ in range(2):
        np.testing.assert_array_equal(ops.swap(x, y), [[10, 11, 12], [0, 1, 2]])
    np.testing.assert_array_equal(jax.jit(lambda x, y: ops.swap(*ops.swap(x, y)))(x, y), [x, y])


def test_rank_0_and_empty(ops):
    assert int(ops.increment(np.int32(41))) == 42
    assert ops.add_to(jnp.zeros(0), jnp.zeros(0)).shape == (0,)


def test_a_value_used_again_is_the_old_one(ops):
    @jax.jit
    def several(x, y):
        return ops.add_to(x, y), y * 10, ops.add_to(x, y), ops.add_to(y, x), x + y

    x, y = jnp.array([1.0, 2.0]), jnp.array([5.0, 7.0])
    total = [6, 9]
    np.testing.assert_array_equal(several(x, y), [total, [50, 70], total, total, total])


def test_constants_stay(ops):
    captured = aligned(np.zeros(64))
    x = jnp.ones(64)

    @jax.jit
    def constants(x):
        return ops.add_to(x, jnp.zeros(64)), ops.add_to(x, captured), ops.add_to(x, x * 0)

    for _ in range(3):
        np.testing.assert_array_equal(constants(x), np.ones((3, 64)))
    np.testing.assert_array_equal(captured, np.zeros(64))


@pytest.mark.filterwarnings("error")
def test_donation(ops):
    donated = jax.jit(ops.add_to, donate_argnums=1)
    x, y = jnp.ones(1000), jnp.arange(1000.0)
    address = y.unsafe_buffer_pointer()
    result = donated(x, y)
    np.testing.assert_array_equal(result, 1 + np.arange(1000.0))
    assert y.is_deleted()
    assert result.unsafe_buffer_pointer() == address

    both = jax.jit(ops.swap, donate_argnums=(0, 1))
    x, y = jnp.zeros(1000), jnp.ones(1000)
    np.testing.assert_array_equal(both(x, y), [np.ones(1000), np.zeros(1000)])
    assert x.is_deleted()
    assert y.is_deleted()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("compiled", [False, True], ids=["jit", "ahead-of-time"])
def test_donation_of_a_batch(ops, compiled):
    donated = jax.jit(jax.vmap(ops.add_to), donate_argnums=1)
    x, y = jnp.ones((10, 100)), jnp.zeros((10, 100))
    if compiled:
        donated = donated.lower(x, y).compile()
    address = y.unsafe_buffer_pointer()
    result = donated(x, y)
    np.testing.assert_array_equal(result, x)
    assert y.is_deleted()
    assert not x.is_deleted()
    assert result.unsafe_buffer_pointer() == address


def test_donation_of_a_plain_input_changes_nothing(ops):
    with warnings.catch_warnings():
        # Where the result cannot use the memory, JAX says so.
        warnings.simplefilter("ignore")
        result = jax.jit(ops.add_to, donate_argnums=0)(jnp.ones(8), jnp.arange(8.0))
    np.testing.assert_array_equal(result, 1 + np.arange(8.0))


def test_carry_of_a_scan(ops):
    xs = np.arange(20, dtype=np.float32).reshape(5, 4)

    @jax.jit
    def accumulate(xs):
        def step(y, x):
            new = ops.add_to(x, y)
            return new, (new, y)

        return jax.lax.scan(step, jnp.zeros(4), xs)

    sums = np.cumsum(xs, axis=0)
    last, (after, before) = accumulate(xs)
    np.testing.assert_array_equal(last, sums[-1])
    np.testing.assert_array_equal(after, sums)
    np.testing.assert_array_equal(before, np.concatenate([np.zeros((1, 4)), sums[:-1]]))


def test_carry_of_a_tuple(ops):
    def step(carry, _):
        return ops.swap(*carry), None

    start = jnp.zeros(2), jnp.ones(2)
    odd, _ = jax.lax.scan(step, start, None, length=3)
    np.testing.assert_array_equal(odd, [[1, 1], [0, 0]])


def test_carry_of_while_and_fori_loops(ops):
    x = jnp.array([1.0, 2.0])
    doubled = jax.jit(
        lambda x: jax.lax.while_loop(lambda x: x[0] < 50, lambda x: ops.add_to(x, x), x)
    )
    np.testing.assert_array_equal(doubled(x), [64, 128])
    counted = jax.jit(lambda n: jax.lax.fori_loop(0, 7, lambda _, n: ops.increment(n), n))
    assert int(counted(np.int32(3))) == 10


def test_the_shape_is_not_to_be_chosen(ops):
    for output_dims in (3, {"y": 3}):
        with pytest.raises(ValueError, match=r"fixture\.add_to: output_dims"):
            ops.add_to(jnp.ones(3), jnp.ones(3), output_dims=output_dims)
