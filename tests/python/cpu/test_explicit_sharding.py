"""Meshes whose axes are in the types of arrays."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)


@pytest.fixture(params=["mesh of the arrays", "mesh of the program"], autouse=True)
def _context(request, mesh):
    if request.param == "mesh of the arrays":
        context = contextlib.nullcontext()
    elif hasattr(jax, "set_mesh"):
        context = jax.set_mesh(mesh)
    else:
        context = jax.sharding.use_mesh(mesh)
    with context:
        yield


CASES = {
    # Promised dimensions stay as they are, and all others are whole.
    "rows": ("normalise", None, [((8, 6), "a")], ("a", None)),
    "both axes": ("normalise", None, [((8, 6), ("a", "b"))], (("a", "b"), None)),
    "columns": ("normalise", None, [((8, 6), "a", "b")], ("a", None)),
    "table": ("dense", None, [((8, 6), "a"), ((4, 6), "b"), ((4,), "a")], ("a", None)),
    "first in-out": ("scale_rows", None, [((),), ((8,), "a"), ((8, 3), "b")], ("a", None)),
    "no promise": ("softmax", None, [((8,), "a")], (None,)),
    # A batch axis does, too.
    "batch": ("softmax", 0, [((4, 6), "a")], ("a", None)),
    "inner axis": ("softmax", 0, [((4, 6), None, "a")], (None, None)),
    "last axis": ("softmax", 1, [((6, 4), "b", "a")], ("a", None)),
    "batch of rows": ("normalise", 0, [((4, 8, 6), "a", "b")], ("a", None, None)),
    "batch of a table": (
        "dense",
        (0, None, 0),
        [((4, 8, 6), "b"), ((2, 6), "a"), ((4, 2), "b")],
        ("b", None, None),
    ),
    "whole batch": ("normalise", 0, [((4, 8, 6),)], (None, None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_types_and_values(ops, mesh, case):
    name, in_axes, args, spec = CASES[case]
    function = getattr(ops, name)
    if in_axes is not None:
        function = jax.vmap(function, in_axes)
    arrays = [numbers(*shape) for shape, *_ in args]
    sharded = [
        jax.device_put(array, NamedSharding(mesh, P(*parts)))
        for array, (_, *parts) in zip(arrays, args, strict=True)
    ]
    seen = []

    @jax.jit
    def program(*arrays):
        results = jax.tree.leaves(function(*arrays))
        seen.extend(jax.typeof(result) for result in results)
        return results

    results = program(*sharded)
    assert tuple(seen[0].sharding.spec) == spec
    expected = jax.tree.leaves(function(*arrays))
    for result, want, kind in zip(results, expected, seen, strict=True):
        np.testing.assert_array_equal(result, want)
        # What the compiler did is what the type says.
        sharding = NamedSharding(mesh, kind.sharding.spec)
        assert result.sharding.is_equivalent_to(sharding, result.ndim)
    for result, want in zip(jax.tree.leaves(function(*sharded)), expected, strict=True):
        np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("spec", [("a",), (None, "a"), ("b", "a")])
def test_sequential(ops, mesh, spec):
    x = jax.device_put(numbers(4, 6), NamedSharding(mesh, P(*spec)))
    one_by_one = jax.vmap(functools.partial(ops.softmax, vmap_method="sequential"))
    np.testing.assert_array_equal(jax.jit(one_by_one)(x), jax.vmap(ops.softmax)(numbers(4, 6)))


def test_among_operations_of_jax(ops, mesh):
    x = jax.device_put(numbers(8, 6), NamedSharding(mesh, P("a")))
    w, bias = numbers(6, 6), numbers(6)

    @jax.jit
    def program(x):
        y = jnp.tanh(ops.dense(x, w, bias)) + x
        return ops.normalise(y) * 2 + jax.vmap(ops.softmax)(y)

    result = program(x)
    np.testing.assert_allclose(result, program(numbers(8, 6)), rtol=1e-6)
    assert next(iter(jax.typeof(result).sharding.spec)) == "a"
