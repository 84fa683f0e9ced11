"""`batch_dims`: one run for a whole batch, where the author's promise covers it."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from batching import METHODS, check, loop, with_axes

import jax_callable

AT_ONCE = METHODS[:3]


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


def entries(*shape):
    return np.random.default_rng(7).integers(0, 4, shape).astype(np.int32)


@pytest.fixture
def promise_runs(ops):
    """The number of runs of the fixture's promising functions in a block."""

    class Runs:
        def __enter__(self):
            jax.effects_barrier()
            self.before = int(ops.promise_runs())
            return self

        def __exit__(self, *_):
            jax.effects_barrier()
            self.added = int(ops.promise_runs()) - self.before

    return Runs


# name, arguments, in_axes, out_axes, whether the batch of 3 folds
CASES = {
    "rows": ("dense", [numbers(3, 4, 5), numbers(2, 5), numbers(2)], (0, None, None), 0, True),
    "moved": ("dense", [numbers(4, 5, 3), numbers(2, 5), numbers(2)], (2, None, None), 2, True),
    "weights": ("dense", [numbers(4, 5), numbers(3, 2, 5), numbers(2)], (None, 0, None), 0, False),
    "bias": ("dense", [numbers(3, 4, 5), numbers(2, 5), numbers(3, 2)], (0, None, 0), 1, False),
    "shape of the input": ("normalise", [numbers(4, 3, 5)], 1, 1, True),
    "one table": ("gather", [numbers(4), entries(3, 5)], (None, 0), 0, True),
    "many tables": ("gather", [numbers(3, 4), entries(3, 5)], 0, 0, False),
    "in-out": ("scaled_sum", [numbers(3, 4), numbers(3, 4)], 0, 0, True),
    "in-out only": ("scaled_sum", [numbers(4), numbers(4, 3)], (None, 1), 0, True),
    "input only": ("scaled_sum", [numbers(4, 3), numbers(4)], (1, None), 1, True),
    "two results": (
        "scale_rows",
        [np.float32(2), numbers(3, 4), numbers(4, 3, 5)],
        (None, 0, 1),
        0,
        True,
    ),
    "a table of rank 0": (
        "scale_rows",
        [numbers(3), numbers(3, 4), numbers(3, 4, 5)],
        0,
        0,
        False,
    ),
    "packed": ("turn", [numbers(3, 4, 2, 2), numbers(4, 2)], (0, None), 0, True),
    "packed, moved": ("turn", [numbers(4, 2, 2, 3), numbers(4, 2, 3)], (3, 2), 1, True),
    "scratch": ("sorted_medians", [numbers(3, 4, 5)], 0, 0, True),
    "two results of two dimensions": ("apart", [numbers(3, 4), numbers(5)], (0, None), 0, False),
    "the second name": ("second_name", [entries(2), entries(3, 4)], (None, 0), 0, True),
    "the first name": ("second_name", [entries(3, 2), entries(4)], (0, None), 0, False),
    "one row": ("normalise", [numbers(3, 1, 5)], 0, 0, True),
    "no columns": ("normalise", [numbers(3, 4, 0)], 0, 0, True),
    "batch of one": ("normalise", [numbers(1, 4, 2)], 0, 0, True),
}
SCALARS = {"scaled_sum": [0.5], "second_name": [7]}


def function(ops, name, **options):
    return functools.partial(getattr(ops, name), *SCALARS.get(name, ()), **options)


@pytest.mark.parametrize("method", AT_ONCE)
@pytest.mark.parametrize("case", CASES)
def test_against_a_loop(ops, promise_runs, case, method):
    name, args, in_axes, out_axes, folds = CASES[case]
    batched = jax.vmap(function(ops, name, vmap_method=method), in_axes, out_axes)
    check(jax.jit(batched), loop(function(ops, name), in_axes, out_axes), *args)
    check(batched, loop(function(ops, name), in_axes, out_axes), *args)
    text = jax.jit(batched).lower(*args).as_text()
    assert ("jc.batch" in text) != folds
    if name != "apart" and 0 not in np.shape(args[0]):
        with promise_runs() as runs:
            jax.block_until_ready(jax.jit(batched)(*args))
        assert runs.added == (1 if folds else 3)


@pytest.mark.parametrize("method", METHODS[3:])
def test_sequential_methods_stay_sequential(ops, promise_runs, method):
    batched = jax.jit(jax.vmap(functools.partial(ops.normalise, vmap_method=method)))
    with promise_runs() as runs:
        check(batched, lambda x: np.asarray(batched(x)), numbers(3, 4, 5))
    assert runs.added == 6


@pytest.mark.parametrize(
    ("inner", "outer", "axes"),
    [
        ((0, None, None), (0, None, None), 0),
        ((1, None, None), (2, None, None), 0),
        ((None, 0, None), (0, None, None), 1),
        ((0, None, None), (0, 0, None), 1),
        ((0, None, 0), (0, 0, None), 2),
        ((0, 0, 0), (0, None, None), 1),
        ((None, None, 0), (0, None, 0), 2),
        ((None, 0, 0), (1, None, None), 1),
    ],
)
def test_two_levels(ops, inner, outer, axes):
    shapes = with_axes([(4, 5), (2, 5), (2,)], (6, inner), (3, outer))
    args = [numbers(*shape) for shape in shapes]
    batched = jax.vmap(jax.vmap(ops.dense, inner), outer)
    text = jax.jit(batched).lower(*args).as_text()
    (call,) = [line for line in text.splitlines() if "@fixture.dense" in line]
    described = call.partition('jc.batch = "')[2]
    assert len(described.split(",")[0] if described else "") == axes
    check(jax.jit(batched), loop(loop(ops.dense, inner), outer), *args)


def test_three_levels_with_an_in_out(ops):
    f = function(ops, "scaled_sum")
    axes = (None, 0), (0, 0), (None, 1)
    batched, expected = f, f
    for each in axes:
        batched, expected = jax.vmap(batched, each), loop(expected, each)
    x, y = numbers(2, 4), numbers(2, 6, 5, 4)
    check(jax.jit(batched), expected, x, y)


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (0, 0, 0)])
def test_nothing_to_do(ops, shape):
    for transform in (lambda f: f, jax.jit):
        result = transform(jax.vmap(ops.dense, (0, None, None)))(
            jnp.zeros(shape), jnp.zeros((2, shape[2])), jnp.zeros(2)
        )
        assert result.shape == (*shape[:2], 2)
        rows, size = transform(jax.vmap(ops.scale_rows, (None, 0, None)))(
            jnp.float32(0), jnp.zeros(shape[:2]), jnp.zeros(shape[1:])
        )
        assert (rows.shape, size.shape) == (shape, shape[:2])


def test_shapes_that_the_caller_gives(ops, promise_runs):
    for output_dims, folds in (((4, 2), True), ((3, 2), False), ({"out": (4, 6)}, True)):
        f = functools.partial(ops.steps, output_dims=output_dims)
        text = jax.jit(jax.vmap(f)).lower(numbers(3, 4, 5)).as_text()
        assert ("jc.batch" in text) != folds
        check(jax.jit(jax.vmap(f)), loop(f), numbers(3, 4, 5))
        check(jax.jit(jax.vmap(jax.vmap(f))), loop(loop(f)), numbers(2, 3, 4, 5))


def test_side_effects_keep_their_number_of_runs(ops, promise_runs):
    batched = jax.jit(jax.vmap(ops.effectful_rows))
    with promise_runs() as runs:
        np.testing.assert_array_equal(batched(numbers(3, 4, 5)), -numbers(3, 4, 5))
    assert runs.added == 3


def test_errors(ops):
    batched = jax.jit(jax.vmap(ops.gather, (None, 0)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"fixture\.gather: .*no entry 9"):
        jax.block_until_ready(batched(numbers(4), np.array([[0, 1], [9, 2]], np.int32)))
    with pytest.raises(ValueError, match=r"parameter `w`: axis 1 is `k` = 4, but `k` is 5"):
        jax.vmap(ops.dense, (0, None, None))(numbers(3, 4, 5), numbers(2, 4), numbers(2))


def test_in_other_transformations(ops):
    x, w, bias = numbers(3, 4, 5), numbers(5, 5), numbers(5)

    def step(x, _):
        return ops.dense(x, w, bias), ops.sorted_medians(x)

    def steps(x):
        return jax.lax.scan(step, x, None, length=3)

    check(jax.jit(jax.vmap(steps)), loop(steps), x)

    def pick(flag, x):
        return jax.lax.cond(flag, ops.normalise, lambda x: ops.dense(x, w, bias), x)

    check(jax.jit(jax.vmap(pick)), loop(pick), np.array([True, False, True]), x)


def test_symbolic_batches(ops):
    shape = jax.export.symbolic_shape("b, n, m")
    x = jax.ShapeDtypeStruct(shape, np.float32)
    row = jax.ShapeDtypeStruct(shape[1:], np.float32)
    checks = jax_callable.disabled_checks(ops)

    def program(x, row):
        rows = jax.vmap(ops.scale_rows, (None, None, 0))(jnp.float32(1), row[:, 0], x)
        return *rows, jax.vmap(ops.sorted_medians)(x), jax.vmap(ops.normalise)(x)

    exported = jax.export.export(jax.jit(program), disabled_checks=checks)(x, row)
    assert "jc.batch" not in exported.mlir_module()
    for sizes in ((3, 4, 5), (1, 1, 1), (2, 6, 1)):
        args = numbers(*sizes), numbers(*sizes[1:])
        check(exported.call, program, *args)
        expected = loop(ops.sorted_medians)(args[0])
        np.testing.assert_array_equal(exported.call(*args)[2], expected)


def test_a_jacobian_is_one_run(ops, promise_runs):
    w = numbers(5, 5)

    @jax.custom_vjp
    def product(x):
        return ops.dense(x, w, jnp.zeros(5))

    product.defvjp(
        lambda x: (product(x), None),
        lambda _, cotangent: (ops.dense(cotangent, w.T, jnp.zeros(5)),),
    )
    jacobian = jax.jit(jax.jacrev(product))
    x = numbers(2, 5)
    found = jax.block_until_ready(jacobian(x))
    np.testing.assert_array_equal(found, jnp.einsum("ij,kl->ikjl", jnp.eye(2), w))
    with promise_runs() as runs:
        jax.block_until_ready(jacobian(x))
    # One for all of the rows, and the forward one at most.
    assert runs.added <= 2


@pytest.mark.parametrize(
    ("derivative", "num_runs"),
    [
        (lambda f: jax.vmap(jax.grad(lambda x: jnp.sum(jnp.sin(f(x))))), 2),
        (lambda f: jax.grad(lambda xs: jnp.sum(jnp.sin(jax.vmap(f)(xs)))), 2),
        # The result of the call itself is not needed.
        (lambda f: lambda xs: jax.jacrev(f)(xs[0]), 1),
    ],
    ids=["vmap of grad", "grad of vmap", "jacrev"],
)
def test_derivatives(ops, promise_runs, derivative, num_runs):
    xs = numbers(3, 4)
    with promise_runs() as runs:
        result = jax.jit(derivative(ops.parabola))(xs)
    # Once forward, once backward, for all elements.
    assert runs.added == num_runs
    np.testing.assert_allclose(result, derivative(jnp.square)(xs), rtol=1e-6)
