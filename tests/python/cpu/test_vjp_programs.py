"""Derivatives by `vjp` inside programs: loops, meshes, export, what is compiled and kept."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import batch, close, loss, matrix, offset, power, several, vector, x
from jax.sharding import PartitionSpec as P

INSIDE = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (2 * f(c), None), x, None, 3)[0],
    "scan of checkpoint": lambda f: (
        lambda x: jax.lax.scan(jax.checkpoint(lambda c, _: (2 * f(c), None)), x, None, 3)[0]
    ),
    "fori_loop": lambda f: lambda x: jax.lax.fori_loop(0, 3, lambda _, c: 2 * f(c), x),
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, lambda x: 2 * x, x),
    "map": lambda f: lambda x: jax.lax.map(f, jnp.stack([x, 2 * x])).sum(0),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum(0),
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_derivatives_of_control_flow(ops, inside):
    def first(function):
        return jax.grad(loss(inside(function)))

    def second(function):
        return jax.jacrev(first(function))

    def through_a_loop(function):
        def steps(x):
            return jax.lax.scan(lambda c, _: (c - 0.1 * first(function)(c), None), x, None, 2)[0]

        return jax.grad(lambda x: jnp.sum(steps(x) ** 2))

    for derivative in (first, second, through_a_loop):
        ours, theirs = derivative(ops.smooth), derivative(jax.nn.softmax)
        close(ours, theirs, x)
        # The sum of one element of the batch is negative, which decides in `cond`.
        close(jax.jit(jax.vmap(ours)), jax.vmap(theirs), batch)


def test_effects(ops):
    def steps(function):
        def step(carry, _):
            return jnp.sin(function(carry)), None

        return lambda x: jax.lax.scan(jax.checkpoint(step), x, None, 3)[0]

    close(jax.jit(jax.grad(loss(steps(ops.kept)))), jax.grad(loss(steps(lambda x: x))), x)


def test_only_what_the_backward_callable_takes_is_saved(ops):
    def saved(function, *args):
        _, pullback = jax.vjp(function, *args)
        return sorted(leaf.shape for leaf in jax.tree.leaves(pullback))

    assert saved(ops.smooth, x) == [(5,)]
    assert saved(functools.partial(ops.axpy, 2), x, x) == []
    assert saved(ops.kept, x) == []


def test_eager_gradients_compile_once(ops, compilations):
    gradient = jax.grad(loss(functools.partial(ops.axpy, 1.25)), (0, 1))
    batched = jax.vmap(jax.grad(loss(ops.smooth)))
    summed = jax.grad(
        loss(jax.vmap(functools.partial(ops.several, 1, "label"), (0, None, 0, None)))
    )

    def call(k):
        gradient(x + k, x)
        batched(batch * k)
        summed(np.stack([matrix, matrix]), offset, np.stack([vector, vector * k]), power)

    call(1)
    with compilations() as counter:
        call(2)
        call(3)
    assert counter.added == 0


def test_eager_gradients_keep_nothing(ops):
    gradient = jax.value_and_grad(loss(functools.partial(ops.axpy, 1.25)), (0, 1))
    batched = jax.vmap(jax.grad(loss(ops.smooth)))

    def objects_after(calls):
        for k in range(calls):
            gradient(x + k, x)
            batched(batch * k)
        gc.collect()
        return len(gc.get_objects()), len(jax.live_arrays())

    objects, arrays = objects_after(10)
    more_objects, more_arrays = objects_after(100)
    # One object for each call would be 200.
    assert more_objects - objects < 100
    assert more_arrays == arrays


def test_donated_arguments_of_a_step(ops):
    @functools.partial(jax.jit, donate_argnums=0)
    def step(y, x):
        return y - 0.1 * jax.grad(loss(functools.partial(ops.axpy, 2)), 1)(x, y)

    def twin(y, x):
        return y - 0.1 * jax.grad(loss(lambda x, y: 2 * x + y), 1)(x, y)

    y = jnp.asarray(x)
    for _ in range(3):
        wanted = twin(y, x)
        y = step(y, x)
        np.testing.assert_allclose(y, wanted, 1e-5)


def test_calls_without_derivatives_are_as_before(ops):
    text = str(jax.make_jaxpr(ops.smooth)(x))
    assert "custom_vjp" not in text
    assert text.count("jax_callable") == 1


def mesh(kind):
    types = getattr(jax.sharding, "AxisType", None)
    return jax.make_mesh((4,), ("i",), axis_types=(getattr(types, kind),))


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="jax.shard_map is newer")
def test_shard_map(rust_several):
    matrix = np.arange(16, dtype=np.float32).reshape(4, 4) / 5

    def outside(function):
        def local(matrix, vector):
            return function(matrix, jnp.zeros(1, jnp.int32), vector, power)[0]

        specs = {"in_specs": (P("i"), P()), "out_specs": P("i")}
        return jax.grad(loss(jax.shard_map(local, mesh=mesh("Auto"), **specs)), (0, 1))

    def inside(function):
        def local(matrix, vector):
            # The vector is on all devices, so its derivative is the sum of theirs.
            return jax.grad(
                lambda v: jnp.sin(function(matrix, jnp.zeros(1, jnp.int32), v, power)[0]).sum()
            )(vector)

        specs = {"in_specs": (P("i"), P()), "out_specs": P()}
        return jax.shard_map(local, mesh=mesh("Auto"), **specs)

    for wrap in (outside, inside):
        for jit in (jax.jit, lambda f: f):
            close(jit(wrap(rust_several)), jit(wrap(several)), matrix, vector)


@pytest.mark.skipif(not hasattr(jax, "set_mesh"), reason="no explicit meshes")
def test_explicit_sharding(ops):
    with jax.set_mesh(mesh("Explicit")):
        rows = jax.device_put(np.resize(x, (4, 4)), P("i"))
        ours, theirs = (jax.jit(jax.grad(loss(jax.vmap(f)))) for f in (ops.smooth, jax.nn.softmax))
        close(ours, theirs, rows)
        assert ours(rows).sharding.is_equivalent_to(rows.sharding, 2)


def test_symbolic_export(ops):
    pytest.importorskip("flatbuffers")
    from jax import export

    import jax_callable

    (n,) = export.symbolic_shape("n")
    exported = export.export(
        jax.jit(jax.grad(loss(ops.smooth))), disabled_checks=jax_callable.disabled_checks(ops)
    )(jax.ShapeDtypeStruct((n,), np.float32))
    loaded = export.deserialize(exported.serialize())
    close(loaded.call, jax.grad(loss(jax.nn.softmax)), x)
