"""How often a function runs: kept, dropped, merged, repeated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

x = np.arange(3, dtype=np.float32)


@pytest.fixture
def added(runs):
    """Calls a function some times, and returns how often pure and effectful bodies ran."""

    def measure(function, *args, times=1):
        with runs() as counter:
            for _ in range(times):
                jax.block_until_ready(function(*args))
        return counter.added

    return measure


def test_eager_calls(ops, added):
    assert added(ops.count_pure, x, times=3) == [3, 0]
    assert added(ops.count_effectful, x, times=3) == [0, 3]


def test_unused_results(ops, added):
    @jax.jit
    def unused(x):
        ops.count_pure(x)
        ops.count_effectful(x)
        return x + 1

    assert added(unused, x, times=4) == [0, 4]


def test_what_is_left_in_the_compiled_program(ops):
    @jax.jit
    def unused(x):
        ops.count_pure(x)
        ops.count_effectful(x)
        return ops.count_pure(x + 1) + ops.count_pure(x + 1)

    lowered = unused.lower(x)
    text = lowered.compile().as_text()
    assert text.count(ops.count_pure.target.target) == 1
    assert text.count(ops.count_effectful.target.target) == 1
    assert "custom_call_has_side_effect=true" in text


def test_equal_calls(ops, added):
    @jax.jit
    def twice(x):
        return ops.count_pure(x) + ops.count_pure(x), ops.count_effectful(x), ops.count_effectful(x)

    # XLA makes one call of two equal pure ones.
    assert added(twice, x, times=2) == [2, 4]


def test_constant_arguments(ops, added):
    function = jax.jit(lambda: (ops.count_pure(jnp.ones(3)), ops.count_effectful(jnp.ones(3))))
    assert added(function, times=3) == [3, 3]


def test_empty_arrays(ops, added):
    # XLA knows the result of a call that has none.
    empty = np.zeros(0, np.float32)
    assert added(jax.jit(ops.count_pure), empty)[1] == 0
    assert added(jax.jit(ops.count_effectful), empty) == [0, 1]
    assert added(jax.jit(jax.vmap(ops.count_effectful)), np.zeros((4, 0), np.float32)) == [0, 4]


def test_inside_inlined_functions(ops, added):
    inner = jax.jit(lambda x: ops.count_effectful(x) * 0)
    function = jax.jit(lambda x: inner(x) + inner(x) + 1)
    np.testing.assert_array_equal(function(x), [1, 1, 1])
    assert added(function, x) == [0, 2]


def test_unused_in_control_flow(ops, added):
    def body(carry, x):
        ops.count_effectful(x)
        ops.count_pure(x)
        return carry + 1, None

    scanned = jax.jit(lambda xs: jax.lax.scan(body, 0, xs)[0])
    assert added(scanned, np.ones((5, 3), np.float32)) == [0, 5]

    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 6, lambda i, c: body(c, x)[0], 0))
    assert added(looped, x) == [0, 6]

    conditional = jax.jit(lambda flag, x: jax.lax.cond(flag, lambda: body(0, x)[0], lambda: 0))
    assert added(conditional, True, x) == [0, 1]
    assert added(conditional, False, x) == [0, 0]


def test_unused_under_vmap(ops, added):
    def element(x):
        ops.count_effectful(x)
        ops.count_pure(x)
        return x.sum()

    assert added(jax.jit(jax.vmap(element)), np.ones((4, 3), np.float32)) == [0, 4]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_unused_under_pmap(ops, added):
    def element(x):
        ops.count_effectful(x)
        ops.count_pure(x)
        return x.sum()

    assert added(jax.pmap(element), np.ones((4, 3), np.float32)) == [0, 4]


def test_beside_a_derivative(ops, added):
    def loss(x):
        ops.count_effectful(jax.lax.stop_gradient(x))
        return (x**2).sum()

    assert added(jax.jit(jax.grad(loss)), x) == [0, 1]


def test_inside_a_checkpoint(ops, added):
    @jax.checkpoint
    def loss(x):
        ops.count_effectful(jax.lax.stop_gradient(x))
        return (jnp.sin(x) ** 2).sum()

    def steps(x):
        return jax.lax.scan(lambda c, _: (c + loss(c), None), x, None, 3)[0].sum()

    assert added(jax.jit(jax.grad(loss)), x) == [0, 1]
    assert added(jax.jit(jax.grad(steps)), x) == [0, 3]


def test_inside_a_custom_derivative(ops, added):
    @jax.custom_vjp
    def identity(x):
        return ops.count_effectful(x)

    identity.defvjp(lambda x: (identity(x), None), lambda _, ct: (ops.count_effectful(ct),))
    assert added(jax.jit(jax.grad(lambda x: identity(x).sum())), x) == [0, 2]


def test_ahead_of_time(ops, added):
    compiled = jax.jit(ops.count_effectful).lower(x).compile()
    assert added(compiled, jnp.asarray(x), times=2) == [0, 2]


def test_tracing_runs_nothing(ops, added):
    def trace(x):
        jax.make_jaxpr(ops.count_effectful)(x)
        jax.jit(ops.count_effectful).lower(x).compile()
        return x

    assert added(trace, x) == [0, 0]
