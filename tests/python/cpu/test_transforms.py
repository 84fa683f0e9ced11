"""The transformations of JAX other than `jax.vmap`."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec


@pytest.fixture(scope="module")
def devices():
    found = jax.devices("cpu")
    assert len(found) == 4
    return found


def numbers(*shape):
    return np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)


def softmax(x):
    return jax.nn.softmax(x)


def test_among_operations_of_jax(ops):
    @jax.jit
    def program(x):
        y = ops.softmax(x * 2 + 1)
        return ops.cumsum(y[::-1])[-1], jnp.sort(y)

    x = numbers(6)
    total, ordered = program(x)
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    np.testing.assert_allclose(ordered, np.sort(softmax(2 * x + 1)), rtol=1e-6)


def test_a_long_chain(ops):
    @jax.jit
    def chain(x):
        for _ in range(30):
            x = ops.add_to(ops.stencil(x), x)
        return x

    expected = x = numbers(8)
    for _ in range(30):
        padded = np.pad(expected, 1, mode="edge")
        expected = expected + (padded[:-2] - 2 * expected + padded[2:])
    np.testing.assert_allclose(chain(x), expected, rtol=1e-4)


def test_without_jit(ops):
    with jax.disable_jit():
        np.testing.assert_array_equal(ops.cumsum(numbers(4)), numbers(4).cumsum())
        last, _ = jax.lax.scan(lambda y, x: (ops.add_to(x, y), None), jnp.zeros(4), numbers(3, 4))
    np.testing.assert_array_equal(last, numbers(3, 4).sum(0))


def test_shapes_without_running(ops, runs):
    with runs() as counter:
        shape = jax.eval_shape(ops.count_effectful, jax.ShapeDtypeStruct((3,), np.float32))
    assert (shape.shape, shape.dtype) == ((3,), np.float32)
    assert counter.added == [0, 0]
    c, d = jax.eval_shape(ops.named_shapes, jax.ShapeDtypeStruct((2, 3), np.float32))
    assert (c.shape, d.shape) == ((2, 5), (3,))


def test_ahead_of_time(ops):
    lowered = jax.jit(ops.saxpy, static_argnums=0).lower(
        2.0, *[jax.ShapeDtypeStruct((4,), np.float32)] * 2
    )
    assert f"@{ops.saxpy.target.target}" in lowered.as_text()
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(numbers(4), np.ones(4, np.float32)), 2 * numbers(4) + 1)


def test_jaxpr_names_the_target(ops):
    text = str(jax.make_jaxpr(ops.softmax)(numbers(3)))
    assert "jax_callable[" in text
    assert "fixture.softmax" in text


def test_only_the_taken_branch_runs(ops, runs):
    def branches(index, x):
        return jax.lax.switch(index, [ops.count_pure, ops.count_effectful, lambda x: -x], x)

    x = numbers(3)
    for function in (branches, jax.jit(branches)):
        for index, added, expected in ((0, [1, 0], x), (1, [0, 1], x), (2, [0, 0], -x)):
            with runs() as counter:
                np.testing.assert_array_equal(function(index, x), expected)
            assert counter.added == added


def test_scan_runs_once_a_step(ops, runs):
    @jax.jit
    def steps(xs):
        return jax.lax.scan(lambda c, x: (c, ops.count_pure(ops.count_effectful(x))), 0.0, xs)[1]

    xs = numbers(7, 3)
    with runs() as counter:
        np.testing.assert_array_equal(steps(xs), xs)
    assert counter.added == [7, 7]


def test_a_derivative_by_hand(ops):
    @jax.custom_vjp
    def softmax_of_rust(x):
        return ops.softmax(x)

    def forward(x):
        y = ops.softmax(x)
        return y, y

    def backward(y, ct):
        return (y * (ct - jnp.vdot(y, ct)),)

    softmax_of_rust.defvjp(forward, backward)
    x, weights = numbers(5) / 5, numbers(5)

    def loss(function, x):
        return function(x) @ weights

    ours = jax.jit(jax.grad(functools.partial(loss, softmax_of_rust)))(x)
    np.testing.assert_allclose(ours, jax.grad(functools.partial(loss, softmax))(x), atol=1e-5)
    jacobian = jax.jacrev(softmax_of_rust)(x)
    np.testing.assert_allclose(jacobian, jax.jacrev(softmax)(x), atol=1e-6)


def test_in_a_checkpoint(ops):
    def loss(x, scale):
        return jnp.sum(jax.lax.stop_gradient(ops.softmax(jax.lax.stop_gradient(x))) * scale)

    x, scale = numbers(4), numbers(4)
    gradient = jax.jit(jax.grad(jax.checkpoint(loss), argnums=1))(x, scale)
    np.testing.assert_allclose(gradient, softmax(x), rtol=1e-5)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: jax.grad(lambda x: f(x).sum())(x),
        lambda f, x: jax.jit(jax.grad(lambda x: f(x).sum()))(x),
        lambda f, x: jax.jvp(f, (x,), (x,)),
        lambda f, x: jax.jacfwd(f)(x),
        lambda f, x: jax.jacrev(f)(x),
        lambda f, x: jax.grad(lambda x: jax.vmap(f)(x[None]).sum())(x),
        lambda f, x: jax.grad(
            lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0].sum()
        )(x),
    ],
    ids=["grad", "jit", "jvp", "jacfwd", "jacrev", "vmap", "scan"],
)
def test_no_derivative(ops, transform):
    with pytest.raises(NotImplementedError, match=r"fixture\.softmax: .*jax\.custom_vjp"):
        transform(ops.softmax, jnp.asarray(numbers(3)))


def test_no_derivative_is_needed_beside_it(ops):
    def loss(x, y):
        return (ops.softmax(x) * y).sum()

    np.testing.assert_allclose(jax.grad(loss, 1)(numbers(3), numbers(3)), softmax(numbers(3)), 1e-5)


def test_runs_where_the_arrays_are(ops, devices):
    for ordinal in (2, 0, 3):
        x = jax.device_put(numbers(3), devices[ordinal])
        for function in (ops.place, jax.jit(ops.place)):
            threads, device, out = function(x)
            assert int(device) == ordinal
            assert int(threads) >= 1
            assert out.devices() == {devices[ordinal]}
    with jax.default_device(devices[1]):
        assert int(ops.place(numbers(3))[1]) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pmap(ops, devices):
    function = jax.pmap(lambda x: (jax.vmap(ops.softmax)(x), ops.place(x[0])[1], ops.total(x)))
    for run in range(200):
        # Other numbers each time, so that what an earlier run has left in memory is not right.
        xs = (1 + run % 9) * numbers(4, 2, 5)
        result, ordinals, totals = function(xs)
        np.testing.assert_allclose(result, softmax(xs), rtol=1e-5)
        assert np.asarray(ordinals).tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(totals, xs.sum((1, 2)))
    total = jax.pmap(lambda x: jax.lax.psum(ops.total(x), "i"), axis_name="i")(xs)
    np.testing.assert_array_equal(total, [xs.sum()] * 4)


CHECK = "check_vma" if "check_vma" in inspect.signature(jax.shard_map).parameters else "check_rep"


@pytest.mark.parametrize("checked", [True, False])
def test_shard_map(ops, devices, checked):
    mesh = Mesh(np.array(devices), ("i",))

    @jax.jit
    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(PartitionSpec("i"), PartitionSpec(None)),
        out_specs=(PartitionSpec("i"), PartitionSpec("i"), PartitionSpec("i")),
        **{CHECK: checked},
    )
    def program(x, table):
        def step(carry, x):
            carry = ops.add_to(x, carry)
            return carry, ops.softmax(carry)

        # The carry of a scan must vary over the mesh from its start.
        start = ops.lookup(table, jnp.zeros(5, jnp.int32)) + 0 * x[0]
        last, each = jax.lax.scan(step, start, x)
        return each, last[None], jax.vmap(ops.total)(x[:, None])

    x, table = numbers(8, 5), np.array([2.0, 3.0], np.float32)
    each, last, totals = program(x, table)
    sums = np.cumsum(x.reshape(4, 2, 5), axis=1) + 2
    np.testing.assert_allclose(each, softmax(sums.reshape(8, 5)), rtol=1e-5)
    np.testing.assert_array_equal(last, sums[:, -1])
    np.testing.assert_array_equal(totals, x.sum(1))


def test_shard_map_without_array_inputs(ops, devices):
    mesh = Mesh(np.array(devices), ("i",))
    program = jax.shard_map(
        lambda x: x + ops.iota(output_dims=3),
        mesh=mesh,
        in_specs=PartitionSpec("i"),
        out_specs=PartitionSpec("i"),
    )
    result = jax.jit(program)(np.zeros(12, np.int32))
    np.testing.assert_array_equal(result, np.tile(np.arange(3), 4))


def test_sharded_arrays_without_shard_map(ops, devices):
    sharding = jax.sharding.NamedSharding(Mesh(np.array(devices), ("i",)), PartitionSpec("i"))
    x = jax.device_put(numbers(8), sharding)
    np.testing.assert_allclose(jax.jit(ops.softmax)(x), softmax(numbers(8)), rtol=1e-5)
    np.testing.assert_allclose(ops.softmax(x), softmax(numbers(8)), rtol=1e-5)


def test_calls_on_constants_are_run_each_time(ops, runs):
    function = jax.jit(lambda: ops.count_pure(jnp.ones(3)))
    with runs() as counter:
        for _ in range(3):
            jax.block_until_ready(function())
    assert counter.added == [3, 0]
