"""`jax.vmap` inside `jax.vmap`, and around and inside other transformations."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batching import METHODS, check, loop, with_axes

SEVERAL = METHODS[:1] + METHODS[3:4]  # the others are spelled otherwise, and tested in test_vmap


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ((0, 0, 0), (0, 0, 0)),
        ((None, 0, 0), (0, None, 0)),
        ((0, None, None), (None, 0, None)),
        ((None, None, 0), (0, 0, None)),
        ((1, 0, None), (2, None, 0)),
        ((None, 0, None), (None, 1, None)),
    ],
)
def test_two_levels(ops, method, inner, outer):
    # Sizes that nothing else has, so that a mixed-up axis cannot go unnoticed.
    shapes = with_axes([(4, 5), (5,), (4,)], (2, inner), (3, outer))
    args = [numbers(*shape) for shape in shapes]
    cell = functools.partial(ops.cell, 0.25)
    batched = jax.vmap(jax.vmap(functools.partial(cell, vmap_method=method), inner), outer)
    check(jax.jit(batched), loop(loop(cell, inner), outer), *args)


@pytest.mark.parametrize("methods", list(itertools.product(SEVERAL, repeat=2)))
def test_the_method_of_an_inner_call_counts_at_both_levels(ops, methods):
    def each(table, index):
        first = ops.lookup(table, index, vmap_method=methods[0])
        return ops.cumsum(first, vmap_method=methods[1])

    tables, index = numbers(3, 4), np.array([[3, 0], [1, 1]], np.int32)
    batched = jax.vmap(jax.vmap(each, (None, 0)), (0, None))
    check(jax.jit(batched), loop(loop(each, (None, 0)), (0, None)), tables, index)


def test_three_levels(ops):
    args = numbers(2, 3, 4, 5), numbers(3, 5)
    inner, middle, outer = (0, None), (0, 0), (0, None)

    def matvec(row, x):
        return ops.matmul(row[None], x[:, None])[0]

    batched = jax.vmap(jax.vmap(jax.vmap(matvec, inner), middle), outer)
    check(jax.jit(batched), loop(loop(loop(matvec, inner), middle), outer), *args)


def test_sizes_of_one_are_no_shared_axes(ops):
    # An axis of size 1 and an axis that is not there look alike in the buffers.
    for shapes in ([(1, 3, 4), (1, 3, 5)], [(3, 1, 4), (3, 1, 5)], [(1, 1, 4), (1, 1, 5)]):
        tables = numbers(*shapes[0])
        index = np.random.default_rng(0).integers(0, 4, shapes[1]).astype(np.int32)
        batched = jax.jit(jax.vmap(jax.vmap(ops.lookup)))
        check(batched, loop(loop(ops.lookup)), tables, index)


def test_empty_at_either_level(ops):
    nested = jax.vmap(jax.vmap(ops.lookup, (None, 0)), (0, None))
    for tables, indices in ((0, 3), (2, 0), (0, 0)):
        result = nested(jnp.zeros((tables, 4)), jnp.zeros((indices, 5), jnp.int32))
        assert result.shape == (tables, indices, 5)


def test_eager_nesting(ops):
    nested = jax.vmap(jax.vmap(ops.lookup, (None, 0)), (0, None))
    args = numbers(2, 4), np.array([[0, 3], [2, 2], [1, 0]], np.int32)
    check(nested, loop(loop(ops.lookup, (None, 0)), (0, None)), *args)


@pytest.mark.parametrize("method", SEVERAL)
def test_scan_in_vmap_and_vmap_in_scan(ops, method):
    add = functools.partial(ops.add_to, vmap_method=method)

    def accumulate(xs):
        return jax.lax.scan(lambda y, x: (add(x, y), y), jnp.zeros(4), xs)

    xs = numbers(3, 5, 4)
    expected = np.cumsum(xs, axis=1)
    last, before = jax.jit(jax.vmap(accumulate))(xs)
    np.testing.assert_array_equal(last, expected[:, -1])
    np.testing.assert_array_equal(before[:, 1:], expected[:, :-1])

    step = jax.vmap(add)
    last, _ = jax.lax.scan(lambda y, x: (step(x, y), None), jnp.zeros((5, 4)), xs)
    np.testing.assert_array_equal(last, xs.sum(0))


def test_vmap_over_a_batched_condition(ops):
    def pick(flag, x):
        return jax.lax.cond(flag, ops.cumsum, ops.softmax, x)

    flags, xs = np.array([True, False, True]), numbers(3, 4)
    check(jax.jit(jax.vmap(pick)), loop(pick), flags, xs)


def test_vmap_with_a_batched_while_condition(ops):
    def double_until_large(x):
        return jax.lax.while_loop(lambda x: x.sum() < 100, ops.twice_float32, x)

    xs = np.array([[1, 2], [30, 40], [500, 1]], np.float32)
    batched = jax.jit(jax.vmap(double_until_large))(xs)
    np.testing.assert_array_equal(batched, [[64, 128], [60, 80], [500, 1]])


def test_vmap_of_a_custom_derivative(ops):
    @jax.custom_vjp
    def total(x):
        return ops.total(x)

    total.defvjp(lambda x: (total(x), x.shape), lambda shape, ct: (jnp.full(shape, ct),))
    gradients = jax.vmap(jax.grad(lambda x: total(x) ** 2))(numbers(3, 2, 2))
    sums = numbers(3, 2, 2).sum((1, 2))
    np.testing.assert_array_equal(gradients, np.broadcast_to(2 * sums[:, None, None], (3, 2, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_batches_of_effects(ops, runs, method):
    batched = jax.jit(jax.vmap(functools.partial(ops.count_effectful, vmap_method=method)))
    with runs() as counter:
        jax.block_until_ready(batched(numbers(5, 2)))
    assert counter.added == [0, 5]
