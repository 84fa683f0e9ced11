"""`jax.vmap` against a loop: every method, for functions that depend on all of their array."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batching import METHODS, check, loop


def numbers(*shape, dtype=np.float32):
    values = np.random.default_rng(len(shape)).integers(-9, 9, shape)
    return values.astype(dtype)


def index(*shape):
    return np.random.default_rng(7).integers(0, 4, shape).astype(np.int32)


# name, arguments, in_axes, out_axes
CASES = {
    "elementwise": ("twice_float32", [numbers(3, 4)], 0, 0),
    "softmax": ("softmax", [numbers(3, 4)], 0, 0),
    "last axis": ("softmax", [numbers(4, 3)], -1, -1),
    "total": ("total", [numbers(3, 4, 5)], 0, 0),
    "total over axis 1": ("total", [numbers(4, 3, 5)], 1, 0),
    "total over axis 2": ("total", [numbers(4, 5, 3)], 2, 0),
    "total in one element": ("total_in_one", [numbers(3, 4)], 0, 1),
    "one table": ("lookup", [numbers(4), index(3, 5)], (None, 0), 0),
    "many tables": ("lookup", [numbers(3, 4), index(5)], (0, None), 0),
    "a table each": ("lookup", [numbers(4, 3), index(3, 5)], (1, 0), 1),
    "stencil": ("stencil", [numbers(3, 6)], 0, 0),
    "cumsum": ("cumsum", [numbers(6, 3)], 1, 1),
    "matmul": ("matmul", [numbers(3, 4, 5), numbers(3, 5, 2)], 0, 0),
    "one left matrix": ("matmul", [numbers(4, 5), numbers(5, 3, 2)], (None, 1), 2),
    "one right matrix": ("matmul", [numbers(4, 5, 3), numbers(5, 2)], (2, None), 1),
    "in-out and input": ("row_sums", [numbers(3, 4, 5), numbers(3, 4)], 0, 0),
    "in-out only": ("row_sums", [numbers(4, 5), numbers(4, 3)], (None, 1), 0),
    "input only": ("row_sums", [numbers(4, 3, 5), numbers(4)], (1, None), 1),
    "input over axis 2": ("row_sums", [numbers(4, 5, 3), numbers(4, 3)], (2, 1), -1),
    "in-outs only": ("swap", [numbers(3, 4), numbers(4, 3)], (0, 1), 0),
    "one of two in-outs": ("swap", [numbers(3, 4), numbers(4)], (0, None), 0),
    "packed": ("centre", [numbers(4, 3, 3)], 1, 0),
    "packed with a size of 1": ("centre", [numbers(3, 1, 3)], 0, 0),
    "matrices": ("transform", [numbers(4, 3, 2, 3), numbers(4, 3, 3)], (1, 2), -2),
    "one list of matrices": ("transform", [numbers(4, 2, 3), numbers(3, 4, 3)], (None, 0), 1),
    "rank 0": ("increment", [numbers(3, dtype=np.int32)], 0, 0),
    "batch of one": ("softmax", [numbers(1, 4)], 0, 0),
    "own size of one": ("softmax", [numbers(3, 1)], 0, 0),
    "empty arrays": ("softmax", [numbers(3, 0)], 0, 0),
    "empty sums": ("total", [numbers(3, 0, 2)], 0, 0),
    "four arrays": (
        "sum_of_kinds",
        [
            numbers(3, 2, dtype=np.int8),
            abs(numbers(2, 3)).astype(np.uint16),
            jnp.asarray(numbers(2), jnp.bfloat16),
            numbers(2) > 0,
            numbers(3, 2, dtype=np.complex64),
        ],
        (0, 1, None, None, 0),
        0,
    ),
    "results of two shapes": ("rank_2", [numbers(3, 4, 5)], 0, 0),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_against_a_loop(ops, case, method):
    name, args, in_axes, out_axes = CASES[case]
    function = getattr(ops, name)
    batched = jax.vmap(functools.partial(function, vmap_method=method), in_axes, out_axes)
    check(jax.jit(batched), loop(function, in_axes, out_axes), *args)


@pytest.mark.parametrize(("name", "shape"), [("twice_float32", (3, 4)), ("transpose", (3, 4, 5))])
@pytest.mark.parametrize("method", METHODS)
def test_every_axis_in_and_out(ops, name, shape, method):
    function = getattr(ops, name)
    for axes in itertools.product(range(-len(shape), len(shape)), repeat=2):
        batched = jax.vmap(functools.partial(function, vmap_method=method), *axes)
        check(batched, loop(function, *axes), numbers(*shape))


@pytest.mark.parametrize("method", METHODS)
def test_every_choice_of_batched_arguments(ops, method):
    w, x, hidden = numbers(4, 5), numbers(5), numbers(4)
    function = functools.partial(ops.cell, 0.5, vmap_method=method)
    for chosen in range(1, 8):
        in_axes = tuple(0 if chosen >> i & 1 else None for i in range(3))
        args = [
            arg if axis is None else np.stack([arg, 2 * arg, arg - 1])
            for arg, axis in zip((w, x, hidden), in_axes, strict=True)
        ]
        check(jax.jit(jax.vmap(function, in_axes)), loop(function, in_axes), *args)


@pytest.mark.parametrize("method", METHODS)
def test_empty_batch(ops, method):
    batched = jax.vmap(functools.partial(ops.row_sums, vmap_method=method))
    result = batched(jnp.zeros((0, 4, 5)), jnp.zeros((0, 4)))
    assert result.shape == (0, 4)
    energy = jax.vmap(functools.partial(ops.cell, 1.0, vmap_method=method), (None, 0, None))
    shapes = [each.shape for each in energy(jnp.ones((4, 5)), jnp.zeros((0, 5)), jnp.ones(4))]
    assert shapes == [(0, 4), (0,)]


@pytest.mark.parametrize("method", METHODS)
def test_one_program_many_batch_sizes(ops, method):
    inner = jax.jit(functools.partial(ops.softmax, vmap_method=method))
    batched = jax.jit(jax.vmap(inner))
    for size in (3, 5, 3, 1, 5):
        check(batched, loop(ops.softmax), numbers(size, 4))


@pytest.mark.parametrize("method", METHODS)
def test_the_body_runs_once_per_element_and_sees_no_batch(ops, runs, method):
    shape = jax.vmap(functools.partial(ops.seen_shape, vmap_method=method))(numbers(6, 4, 5))
    assert np.asarray(shape).tolist() == [[4, 5]] * 6
    with runs() as counter:
        jax.vmap(functools.partial(ops.count_pure, vmap_method=method))(numbers(6, 4))
    assert counter.added == [6, 0]


@pytest.mark.parametrize("method", METHODS)
def test_how_many_calls_there_are(ops, method):
    batched = jax.jit(jax.vmap(functools.partial(ops.lookup, vmap_method=method), (None, 0)))
    text = batched.lower(numbers(4), index(3, 5)).as_text()
    calls = [line for line in text.splitlines() if "custom_call @fixture.lookup" in line]
    if method.startswith("sequential"):
        assert all("tensor<5xi32>) -> tensor<5xf32>" in line for line in calls)
        assert ("stablehlo.while" in text) == (method == "sequential")
    else:
        # One call, for which the table is not copied.
        (call,) = calls
        assert "(tensor<1x4xf32>, tensor<3x5xi32>) -> tensor<3x5xf32>" in call
        assert "stablehlo.while" not in text


def test_declared_methods(ops):
    x = numbers(3, 4)
    text = jax.jit(jax.vmap(ops.declared_sequential)).lower(x).as_text()
    assert "stablehlo.while" in text
    at_once = jax.vmap(functools.partial(ops.declared_sequential, vmap_method="broadcast_all"))
    assert "stablehlo.while" not in jax.jit(at_once).lower(x).as_text()

    with pytest.raises(NotImplementedError, match=r"fixture\.declared_unbatched: vmap_method is N"):
        jax.vmap(ops.declared_unbatched)(x)
    allowed = functools.partial(ops.declared_unbatched, vmap_method="broadcast_all")
    np.testing.assert_array_equal(jax.vmap(allowed)(x), x)
    with pytest.raises(NotImplementedError, match=r"fixture\.softmax: vmap_method is None"):
        jax.vmap(functools.partial(ops.softmax, vmap_method=None))(x)
    np.testing.assert_array_equal(ops.declared_unbatched(x[0]), x[0])


def test_a_static_scalar_has_no_batch(ops):
    with pytest.raises(TypeError, match=r"fixture\.saxpy: parameter `a`: .*in_axes=None.*rank 0"):
        jax.vmap(ops.saxpy)(numbers(3), numbers(3, 4), numbers(3, 4))
    batched = jax.vmap(ops.saxpy, (None, 0, 0))(3.0, numbers(3, 4), numbers(3, 4))
    np.testing.assert_array_equal(batched, 4 * numbers(3, 4))


def test_checks_see_one_element(ops):
    with pytest.raises(TypeError) as error:
        jax.vmap(ops.softmax)(numbers(2, 3, 4))
    assert "fixture.softmax: parameter `x`: expected rank 1" in str(error.value)
    assert "got shape (3, 4)" in str(error.value)
    with pytest.raises(ValueError, match=r"fixture\.matmul: parameter `b`: axis 0 is `k` = 4"):
        jax.vmap(ops.matmul)(numbers(3, 4, 5), numbers(3, 4, 2))


@pytest.mark.parametrize("method", METHODS)
def test_output_dims_are_those_of_one_element(ops, method):
    corners = functools.partial(ops.corners, output_dims=(2, 3), vmap_method=method)
    check(jax.jit(jax.vmap(corners)), loop(corners), numbers(4, 5))
    shapes = functools.partial(ops.named_shapes, output_dims={"d": 1}, vmap_method=method)
    check(jax.jit(jax.vmap(shapes, 1)), loop(shapes, 1), numbers(2, 4, 3))


def test_without_arrays_there_is_no_batch(ops):
    result = jax.vmap(lambda x: x + ops.iota(output_dims=4))(numbers(3, 4, dtype=np.int32))
    np.testing.assert_array_equal(result, numbers(3, 4, dtype=np.int32) + np.arange(4))


@pytest.mark.parametrize("method", METHODS)
def test_an_error_in_one_element(ops, method):
    batched = jax.jit(jax.vmap(functools.partial(ops.square_root, vmap_method=method)))
    x = np.array([[1, 4], [9, 16], [25, -4]], np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.block_until_ready(batched(x))
    text = str(error.value)
    assert text.startswith("OUT_OF_RANGE: fixture.square_root: ")
    assert "the square root of -4" in text
    assert ("batch element 2" in text) == (not method.startswith("sequential"))
    np.testing.assert_array_equal(batched(abs(x)), np.sqrt(abs(x)))
