"""What else JAX does with functions: checks, callbacks, vectorising, derivatives by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback
from jax.sharding import Mesh, PartitionSpec

x = np.arange(4, dtype=np.float32)


def test_checkify(ops):
    @jax.jit
    def program(x):
        y = ops.softmax(x)
        checkify.check(y[0] > 0.5, "the first is {first}", first=y[0])
        return jax.lax.scan(lambda y, _: (ops.add_to(y, y), None), y, None, 3)[0]

    checked = checkify.checkify(program)
    error, result = checked(x)
    assert "the first is 0.03" in error.get()
    np.testing.assert_allclose(result, 8 * jax.nn.softmax(x), rtol=1e-6)
    error, _ = checked(-x)
    assert error.get() is None
    # JAX's own checks are for its own operations.
    found = checkify.checkify(functools.partial(ops.saxpy, float("nan")), checkify.float_checks)
    error, result = found(x, x)
    assert error.get() is None
    assert np.isnan(result).all()


def test_checkify_around_a_batch_and_an_effect(ops, runs):
    def program(x):
        ops.count_effectful(x[0])
        return jax.vmap(ops.softmax)(x) / x.sum()

    checked = checkify.checkify(jax.jit(program), errors=checkify.float_checks)
    with runs() as counter:
        error, _ = checked(np.zeros((2, 3), np.float32))
    assert "division by zero" in error.get()
    assert counter.added == [0, 1]


@pytest.mark.parametrize("jit", [False, True])
def test_debug_nans(ops, jit):
    function = functools.partial(ops.saxpy, float("nan"))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="jax_callable"):
        jax.block_until_ready((jax.jit(function) if jit else function)(x, x))


def test_callbacks_beside_a_call(ops):
    seen = []

    @jax.jit
    def program(x):
        y = ops.cumsum(x)
        io_callback(lambda y: seen.append(y.tolist()), None, y, ordered=True)
        doubled = jax.pure_callback(lambda y: np.asarray(y) * 2, y, y)
        return ops.add_to(y, doubled)

    np.testing.assert_array_equal(program(x), 3 * np.cumsum(x))
    jax.effects_barrier()
    assert seen == [[0, 1, 3, 6]]


def test_vectorize(ops):
    batch = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    softmax = jnp.vectorize(ops.softmax, signature="(n)->(n)")
    np.testing.assert_allclose(softmax(batch), jax.nn.softmax(batch), rtol=1e-6)
    lookup = jnp.vectorize(ops.lookup, signature="(n),(m)->(m)")
    np.testing.assert_array_equal(lookup(x, np.array([[0, 3], [1, 2]], np.int32)), [[0, 3], [1, 2]])


def test_an_associative_scan(ops):
    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    sums = jax.jit(functools.partial(jax.lax.associative_scan, jax.vmap(ops.add_to)))(rows)
    np.testing.assert_array_equal(sums, np.cumsum(rows, 0))


def test_a_callable_as_an_argument(ops, compilations):
    program = jax.jit(lambda function, x: function(x), static_argnums=0)
    np.testing.assert_array_equal(program(ops.cumsum, x), np.cumsum(x))
    np.testing.assert_array_equal(program(ops.twice_float32, x), 2 * x)
    with compilations() as counter:
        program(ops.cumsum, x)
    assert counter.added == 0
    in_a_tree = jax.tree_util.Partial(ops.add_to, jnp.ones(4))
    np.testing.assert_array_equal(jax.jit(lambda f, x: f(x))(in_a_tree, x), x + 1)


def test_a_derivative_of_each_order_by_hand(ops):
    @jax.custom_jvp
    def twice(x):
        return ops.twice_float32(x)

    @twice.defjvp
    def _(primals, tangents):
        return twice(*primals), 2 * tangents[0]

    np.testing.assert_array_equal(jax.jvp(twice, (x,), (x,)), [2 * x, 2 * x])
    np.testing.assert_array_equal(jax.linearize(twice, x)[1](x), 2 * x)
    np.testing.assert_array_equal(jax.grad(lambda x: twice(x).sum())(x), np.full(4, 2))
    np.testing.assert_array_equal(jax.jit(jax.jacfwd(twice))(x), 2 * np.eye(4))
    np.testing.assert_array_equal(jax.hessian(lambda x: (twice(x) ** 2).sum())(x), 8 * np.eye(4))


def test_policies_of_checkpoints(ops):
    policies = jax.checkpoint_policies
    for policy in (policies.nothing_saveable, policies.everything_saveable, policies.dots_saveable):

        @functools.partial(jax.checkpoint, policy=policy)
        def loss(x, scale):
            return jnp.sum(jax.lax.stop_gradient(ops.cumsum(jax.lax.stop_gradient(x))) * scale**2)

        gradient = jax.jit(jax.grad(loss, 1))(x, x)
        np.testing.assert_array_equal(gradient, 2 * np.cumsum(x) * x)


def test_values_at_compile_time(ops):
    @jax.jit
    def program(x):
        with jax.ensure_compile_time_eval():
            n = int(ops.cumsum(jnp.ones(3))[-1])
        return x[:n] + ops.iota(output_dims=n)

    np.testing.assert_array_equal(program(x), [0, 2, 4])


def test_other_ways_into_a_program(ops):
    converted, constants = jax.closure_convert(lambda y: ops.add_to(jnp.asarray(x), y), x)
    np.testing.assert_array_equal(converted(x, *constants), 2 * x)

    @jax.jit
    def program(x):
        x = jax.lax.optimization_barrier(x)
        with jax.named_scope("of_rust"):
            return jax.lax.platform_dependent(x, cpu=ops.cumsum, default=lambda x: x)

    np.testing.assert_array_equal(program(x), np.cumsum(x))
    on_device = jnp.asarray(x)
    with jax.transfer_guard("disallow"):
        sums = jax.jit(ops.cumsum)(on_device), ops.cumsum(on_device)
    np.testing.assert_array_equal(sums, [np.cumsum(x)] * 2)


def test_places_are_those_of_the_program(ops):
    def program(x):
        return jax.vmap(jax.grad(lambda x: ops.parabola(x).sum()))(x[None])

    equations = jax.make_jaxpr(program)(x).jaxpr.pretty_print(source_info=True).splitlines()
    places = [line for line in equations if "jax_callable" in line]
    assert len(places) == 2
    assert all("test_tools.py" in line for line in places)


@pytest.mark.parametrize(
    "program",
    [
        lambda f: jax.lax.reduce(x, np.float32(0), lambda a, b: f(a) + b, (0,)),
        lambda f: jax.lax.reduce_window(
            x, np.float32(0), lambda a, b: f(a) + b, (2,), (1,), "VALID"
        ),
        lambda f: jnp.asarray(x).at[np.array([0, 2])].apply(f),
    ],
    ids=["reduce", "reduce_window", "apply"],
)
def test_inside_loops_over_numbers(ops, program):
    # XLA would end the process.
    with pytest.raises(NotImplementedError, match=r"fixture\.rank_0: .*each number.*scan"):
        jax.jit(lambda: program(lambda number: ops.rank_0(number)[0]))()


def test_no_transpose(ops):
    with pytest.raises(NotImplementedError, match=r"fixture\.twice_float32: .*transpose"):
        jax.linear_transpose(ops.twice_float32, x)(x)


def test_what_varies_over_a_mesh(ops):
    """Inside `jax.shard_map`, whose check is on: each result varies if any argument does."""
    mesh, split, whole = Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i"), PartitionSpec()
    index = np.array([0, 3, 2, 1], np.int32)
    matrix = np.arange(24, dtype=np.float32).reshape(8, 3)

    def program(x, index, matrix):
        def step(carry, _):
            # The first array does not vary, the in-out does; and the other way round.
            later, first = ops.add_to(x[:1], carry), ops.add_to(carry, x[:1])
            return later + first, ops.total(carry[None])

        found = ops.lookup(x, index)
        last, totals = jax.lax.scan(step, found, None, 2)
        shape = ops.seen_shape(matrix)
        return found, last, totals, shape, ops.named_shapes(matrix)[1], ops.cumsum(x)

    specs = {"in_specs": (whole, split, split), "out_specs": (split,) * 5 + (whole,)}
    run = jax.jit(jax.shard_map(program, mesh=mesh, **specs))
    found, last, totals, shape, rows, sums = run(x + 1, index, matrix)
    np.testing.assert_array_equal(found, index + 1)
    np.testing.assert_array_equal(last, 4 * (index + 1) + 6)
    np.testing.assert_array_equal(totals, np.ravel([[n + 1, 2 * (n + 1) + 2] for n in index]))
    np.testing.assert_array_equal(shape, [2, 3] * 4)
    np.testing.assert_array_equal(rows, np.repeat(-matrix.reshape(4, 6).sum(1), 3))
    np.testing.assert_array_equal(sums, np.cumsum(x + 1))
