"""Transformations of transformations, beside twins in jax.numpy."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import close, loss
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32) / 9


def normalise(x):
    return x / (1 + jnp.abs(x).sum(1, keepdims=True))


@pytest.mark.parametrize("out_axes", [-1, 1, {"hidden": 1, "energy": 0}], ids=str)
def test_axes_of_trees(ops, out_axes):
    def rust(tree):
        hidden, energy = ops.cell(0.5, **tree)
        return {"hidden": hidden, "energy": energy[None]}

    def twin(tree):
        hidden = tree["hidden"] + 0.5 + tree["w"] @ tree["x"]
        return {"hidden": hidden, "energy": jnp.sum(hidden**2)[None]}

    tree = {"w": numbers(4, 5, 3), "x": numbers(5), "hidden": numbers(3, 4)}
    in_axes = ({"w": -1, "x": None, "hidden": 0},)
    ours, theirs = (jax.vmap(f, in_axes, out_axes) for f in (rust, twin))
    close(ours, theirs, tree)
    close(jax.jit(ours), theirs, tree)


def test_a_batch_of_derivatives_of_a_loop(ops):
    def derivative(function):
        def total(start, xs):
            def step(carry, x):
                carry = 0.1 * function(carry) + x
                return carry, function(carry)

            return loss(lambda: jax.lax.scan(step, start, xs))()

        return jax.vmap(jax.value_and_grad(total, (0, 1)), (-1, None), (0, (1, 1)))

    args = numbers(4, 3), numbers(6, 4)
    close(derivative(ops.parabola), derivative(jnp.square), *args)
    close(jax.jit(derivative(ops.parabola)), derivative(jnp.square), *args)


def test_empty_batches_of_derivatives(ops):
    each = [jax.vmap(jax.grad(loss(f))) for f in (ops.parabola, jnp.square)]
    summed = [jax.grad(loss(jax.vmap(f))) for f in (ops.parabola, jnp.square)]
    for shape in ((0, 3), (0, 0), (2, 0)):
        for ours, theirs in (each, summed):
            close(ours, theirs, np.zeros(shape, np.float32))
            close(jax.jit(ours), theirs, np.zeros(shape, np.float32))


def test_a_map_in_pieces(ops):
    x = numbers(7, 4, 5)
    ours, theirs = (
        functools.partial(jax.lax.map, f, batch_size=3) for f in (ops.normalise, normalise)
    )
    close(ours, theirs, x)
    ours, theirs = (
        jax.grad(loss(functools.partial(jax.lax.map, f, batch_size=3)))
        for f in (ops.parabola, jnp.square)
    )
    close(ours, theirs, x[0])


@pytest.mark.parametrize("spread", [False, True], ids=["on each device", "over an axis"])
def test_shard_map_in_a_batch(ops, spread):
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    x = numbers(4, 8, 5)
    programs = {
        "rows": (ops.normalise, normalise),
        "a batch": (jax.vmap(ops.softmax), jax.nn.softmax),
        "a loop": (
            jax.vmap(functools.partial(ops.softmax, vmap_method="sequential")),
            jax.nn.softmax,
        ),
    }
    for rust, twin in programs.values():
        mapped = jax.shard_map(rust, mesh=mesh, in_specs=P("b"), out_specs=P("b"))
        batched = jax.jit(jax.vmap(mapped, spmd_axis_name="a" if spread else None))
        close(batched, jax.vmap(twin), x)


def halves(x):
    return jnp.stack([x, 0.5 * x])


# Each makes a function of an array into another with the same shapes.
WRAPPERS = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "vmap": lambda f: lambda x: jax.vmap(f, 0, -1)(halves(x)).sum(-1) / 2,
    "vmap of one": lambda f: lambda x: jax.vmap(lambda s: s * f(x))(jnp.arange(3.0)).sum(0) / 3,
    "psum": lambda f: (
        lambda x: jax.vmap(lambda x: jax.lax.pmean(f(x), "i"), axis_name="i")(halves(x))[0]
    ),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, y: (0.3 * f(c) + y, None), x, halves(-x))[0],
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, lambda x: f(-x) / 2, x),
    "map": lambda f: lambda x: jax.lax.map(f, halves(x)).sum(0) / 2,
    "grad": lambda f: jax.grad(lambda x: jnp.sin(f(x)).sum()),
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.cos(x))[0],
}


@pytest.mark.parametrize("seed", range(12))
def test_random_towers(ops, seed):
    choose = random.Random(seed)
    ours, theirs = choose.choice([(ops.parabola, jnp.square), (ops.smooth, jax.nn.softmax)])
    names = choose.choices(list(WRAPPERS), k=3)
    while sum(name in ("grad", "vjp") for name in names) > 1:
        names[[name in ("grad", "vjp") for name in names].index(True)] = "vmap"
    for name in names:
        ours, theirs = WRAPPERS[name](ours), WRAPPERS[name](theirs)
    close(ours, jax.jit(theirs), numbers(4))
    close(jax.jit(jax.vmap(ours)), jax.jit(jax.vmap(theirs)), numbers(3, 4))
