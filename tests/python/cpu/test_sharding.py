"""Arrays that are sharded over devices: calls are cut where that is right, and right elsewhere."""

import functools
import inspect
import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jax_callable

MOVES = "all-gather", "all-to-all", "all-reduce", "collective-permute"


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def entries(*shape):
    return np.random.default_rng(7).integers(0, 4, shape).astype(np.int32)


@pytest.fixture(scope="module")
def line():
    return Mesh(np.array(jax.devices()[:4]), ("i",))


@pytest.fixture(scope="module")
def square():
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))


def put(mesh, array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def check(function, *args):
    """Compares a program over sharded arrays with one over whole ones.

    Returns:
        The text of the compiled program, and the results.
    """
    compiled = jax.jit(function).lower(*args).compile()
    results = compiled(*args)
    expected = jax.jit(function)(*map(np.asarray, args))
    jax.tree.map(np.testing.assert_array_equal, results, expected)
    return compiled.as_text(), jax.tree.leaves(results)


def calls(text):
    """The shapes of the first results of custom calls, without axes of size 1 in front."""
    found = re.findall(r"= \(?\w+\[([\d,]*)\]\S*(?: [^)]*\))? custom-call\(", text)
    return [re.sub(r"^(1,)+", "", shape) for shape in found]


def moves(text):
    return [each for each in MOVES if f" {each}(" in text or f" {each}-start(" in text]


# name, arguments with their specs, and the first result on one of 4 devices
CUT = {
    "rows": ("normalise", [(numbers(8, 5), "i")], "2,5"),
    "one row each": ("normalise", [(numbers(4, 5), "i")], "5"),
    "a table of the same rank": (
        "dense",
        [(numbers(8, 5), "i"), (numbers(3, 5),), (numbers(3),)],
        "2,3",
    ),
    "numbers": ("gather", [(numbers(4),), (entries(12), "i")], "3"),
    "an in-out": ("scaled_sum", [(numbers(8), "i"), (numbers(8), "i")], "2"),
    "an in-out that is whole": ("scaled_sum", [(numbers(8), "i"), (numbers(8),)], "2"),
    "two results": (
        "scale_rows",
        [(np.float32(2),), (numbers(8), "i"), (numbers(8, 3), "i")],
        "2,3",
    ),
    "packed": ("turn", [(numbers(8, 2, 2), "i"), (numbers(8, 2), "i")], "2,2"),
    "scratch of two sizes": ("sorted_medians", [(numbers(8, 5), "i")], "2"),
    "the second name": ("second_name", [(entries(3),), (entries(8), "i")], "2"),
    "no columns": ("steps", [(numbers(8, 1), "i")], "2,1"),
}
SCALARS = {"scaled_sum": [0.5], "second_name": [7]}


def function(ops, name, **options):
    return functools.partial(getattr(ops, name), *SCALARS.get(name, ()), **options)


@pytest.mark.parametrize("case", CUT)
def test_promised_dimensions_are_cut(ops, line, case):
    name, args, shape = CUT[case]
    text, results = check(function(ops, name), *(put(line, *arg) for arg in args))
    assert calls(text) == [shape]
    assert moves(text) == []
    assert all(result.sharding.spec[0] == "i" for result in results)


# in_axes, arguments with their specs, and the result on one of 4 devices
BATCHES = {
    "total": (0, [(numbers(4, 3, 5), "i")], "1"),
    "softmax": (0, [(numbers(8, 3), "i")], "2,3"),
    "stencil": (1, [(numbers(9, 8), None, "i")], "2,9"),
    "lookup": ((None, 0), [(numbers(4),), (entries(8, 2), "i")], "2,2"),
    "matmul": ((0, None), [(numbers(8, 3, 2), "i"), (numbers(2, 4),)], "2,3,4"),
    "dense": (
        (0, 0, None),
        [(numbers(4, 3, 5), "i"), (numbers(4, 2, 5), "i"), (numbers(2),)],
        "3,2",
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_are_cut_without_a_promise(ops, line, name):
    in_axes, args, shape = BATCHES[name]
    batched = jax.vmap(getattr(ops, name), in_axes)
    text, results = check(batched, *(put(line, *arg) for arg in args))
    assert calls(text) == [shape]
    assert moves(text) == []
    assert results[0].sharding.spec[0] == "i"


def test_each_device_runs_its_part_once(ops, line):
    x = put(line, numbers(8, 5), "i")
    program = jax.jit(ops.normalise)
    jax.block_until_ready(program(x))
    before = int(ops.promise_runs())
    jax.block_until_ready(program(x))
    assert int(ops.promise_runs()) - before == 4


@pytest.mark.parametrize(
    ("spec", "shape", "gathers"),
    [
        (("a",), "4,6", False),
        (("b",), "4,6", False),
        ((("a", "b"),), "2,6", False),
        ((("b", "a"),), "2,6", False),
        (("a", "b"), "4,6", True),
        ((None, "b"), "8,6", True),
        ((), "8,6", False),
    ],
)
def test_two_axes_of_a_mesh(ops, square, spec, shape, gathers):
    text, _ = check(ops.normalise, put(square, numbers(8, 6), *spec))
    assert calls(text) == [shape]
    assert bool(moves(text)) == gathers


def test_two_batch_axes_over_two_axes_of_a_mesh(ops, square):
    x = put(square, numbers(4, 8, 3), "a", "b")
    text, _ = check(jax.vmap(jax.vmap(ops.softmax)), x)
    assert calls(text) == ["2,4,3"]
    assert moves(text) == []
    table = put(square, numbers(4, 4), "a")
    index = put(square, entries(8, 5), "b")
    nested = jax.vmap(jax.vmap(ops.lookup, (None, 0)), (0, None))
    check(nested, table, index)


def test_what_all_parts_need_is_gathered(ops, line):
    w = put(line, numbers(4, 5), "i")
    text, _ = check(ops.dense, put(line, numbers(8, 5), "i"), w, put(line, numbers(4)))
    assert calls(text) == ["2,4"]
    assert moves(text) == ["all-gather"]


@pytest.mark.parametrize(
    ("program", "array"),
    [
        (lambda ops: ops.softmax, numbers(8)),
        (lambda ops: ops.cumsum, numbers(8)),
        (lambda ops: ops.stencil, numbers(8)),
        (lambda ops: lambda x: ops.apart(x, x[:3]), numbers(8)),
        (lambda ops: lambda x: ops.steps(x, output_dims=(5, 2)), numbers(8, 3)),
        # XLA would make 2 rows more.
        (lambda ops: lambda x: ops.normalise(x[:6]), numbers(8, 3)),
    ],
)
def test_all_else_is_gathered(ops, line, program, array):
    text, _ = check(program(ops), put(line, array, "i"))
    assert "num_batch_dims" not in text
    assert "all-gather" in moves(text)


def test_side_effects(ops, line):
    x = put(line, numbers(8, 3), "i")
    # XLA's word for it: there is no one device whose run would count.
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"cannot be replicated.*effectful_rows"):
        jax.jit(ops.effectful_rows)(x)
    mapped = jax.shard_map(ops.effectful_rows, mesh=line, in_specs=P("i"), out_specs=P("i"))
    np.testing.assert_array_equal(jax.jit(mapped)(x), -numbers(8, 3))


def test_the_switch(ops, line, monkeypatch):
    x = put(line, numbers(8, 5), "i")
    monkeypatch.setenv("JAX_CALLABLE_PARTITION", "0")
    text, _ = check(lambda x: ops.normalise(x), x)
    assert "num_batch_dims" not in text
    assert calls(text) == ["8,5"]
    assert moves(text) == ["all-gather"]
    monkeypatch.setenv("JAX_CALLABLE_PARTITION", "1")
    text, _ = check(lambda x: ops.normalise(x), x)
    assert calls(text) == ["2,5"]


def test_in_loops_beside_other_work(ops, line):
    w, bias = numbers(5, 5) / 9, numbers(5)

    def program(x):
        def step(x, _):
            return ops.normalise(jnp.tanh(ops.dense(x, w, bias))), ops.sorted_medians(x)

        return jax.lax.scan(step, x, None, length=3)

    text, _ = check(program, put(line, numbers(8, 5), "i"))
    assert set(calls(text)) == {"2,5", "2"}
    assert moves(text) == []


def test_donation(ops, line):
    program = jax.jit(lambda x, y: ops.scaled_sum(2.0, x, y), donate_argnums=1)
    x, y = put(line, numbers(8), "i"), put(line, numbers(8), "i")
    np.testing.assert_array_equal(program(x, y), 3 * numbers(8))
    assert y.is_deleted()
    np.testing.assert_array_equal(x, numbers(8))


def test_errors_name_the_target(ops, line):
    program = jax.jit(ops.gather)
    index = put(line, np.array([0, 1, 2, 3, 0, 9, 2, 3], np.int32), "i")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"fixture\.gather: .*no entry 9"):
        jax.block_until_ready(program(put(line, numbers(4)), index))


def test_exported_for_several_devices(ops, line):
    x = put(line, numbers(8, 5), "i")
    program = jax.jit(lambda x: (ops.normalise(x), ops.sorted_medians(x), ops.softmax(x[:, 0])))
    checks = jax_callable.disabled_checks(ops)
    exported = jax.export.export(program, disabled_checks=checks)(x)
    assert exported.nr_devices == 4
    exported = jax.export.deserialize(exported.serialize())
    jax.tree.map(np.testing.assert_array_equal, exported.call(x), program(numbers(8, 5)))
    text = jax.jit(exported.call).lower(x).compile().as_text()
    assert {"2,5", "2", "8"} <= set(calls(text))


CHECKED = {
    "check_vma" if "check_vma" in inspect.signature(jax.shard_map).parameters else "check_rep": True
}


def test_shard_map_in_scan_over_two_axes(ops, square):
    x, y, w = numbers(4, 5), numbers(6, 5), numbers(5, 5)
    seen = []

    def step(w, carry, row):
        # The first varies as x does and as y does, though each of them varies over one axis only.
        result = ops.scaled_sum(0.5, carry, row)
        seen.append(jax.typeof(result))
        return result, jax.vmap(ops.softmax)(ops.dense(row[None], w, row))[0]

    def program(x, y, w):
        start = ops.scaled_sum(1.0, x[0], y[0])
        results = jax.lax.scan(functools.partial(step, w), start, y[1:])
        return jax.tree.map(lambda each: each[None], results)

    mapped = jax.shard_map(
        program,
        mesh=square,
        in_specs=(P("a"), P("b"), P()),
        out_specs=(P(("a", "b")), P("b")),
        **CHECKED,
    )
    last, each = jax.jit(mapped)(x, y, w)
    assert [kind.vma if hasattr(kind, "vma") else kind.mat.varying for kind in seen] == [
        {"a", "b"}
    ] * len(seen)
    for a, b in np.ndindex(2, 2):
        carry, rows = ops.scaled_sum(1.0, x[2 * a], y[3 * b]), []
        for row in y[3 * b + 1 : 3 * b + 3]:
            carry, result = step(w, carry, row)
            rows.append(result)
        np.testing.assert_array_equal(last[2 * a + b], carry)
        np.testing.assert_array_equal(each[b], rows)


def test_shard_map_over_one_axis_of_two(ops, square):
    def program(x):
        return ops.normalise(x), jax.vmap(ops.softmax)(x)

    options = {"axis_names": {"a"}, "mesh": square, "in_specs": P("a"), "out_specs": P("a")}
    mapped = jax.jit(jax.shard_map(program, **options, **CHECKED))
    x = put(square, numbers(8, 3), ("a", "b"))
    jax.tree.map(np.testing.assert_array_equal, mapped(x), program(numbers(8, 3)))
    text = mapped.lower(x).compile().as_text()
    # The other axis is the compiler's, as under jit. XLA's older partitioner gathers it.
    cuts = jax.config.jax_use_shardy_partitioner
    assert calls(text) == ["2,3" if cuts else "4,3"] * 2
    assert (moves(text) == []) == cuts


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pmap_of_vmap(ops):
    x, w, bias = numbers(4, 3, 2, 5), numbers(2, 5), numbers(2)
    mapped = jax.pmap(jax.vmap(ops.dense, (0, None, None)), in_axes=(0, None, None))
    expected = [[ops.dense(rows, w, bias) for rows in each] for each in x]
    np.testing.assert_array_equal(mapped(x, w, bias), expected)
    y = numbers(3, 4, 6)
    mapped = jax.pmap(jax.vmap(functools.partial(ops.scaled_sum, 2.0), (None, 0)), in_axes=(0, 1))
    expected = [[ops.scaled_sum(2.0, y[0, i], y[j, i]) for j in range(3)] for i in range(4)]
    np.testing.assert_array_equal(mapped(y[0], y), expected)


@pytest.mark.parametrize("shape", [(8,), (8, 3)], ids=["a promised dimension", "a batch"])
def test_derivatives_are_cut(ops, line, shape):
    def derivative(function):
        each = function if len(shape) == 1 else jax.vmap(function)
        return jax.grad(lambda x: jnp.sum(jnp.sin(each(x))))

    xs = put(line, numbers(*shape) / 8, "i")
    text, (result,) = check(derivative(ops.parabola), xs)
    assert [np.prod([int(dim) for dim in each.split(",")]) for each in calls(text)] == (
        [xs.size // 4] * 2
    )
    assert moves(text) == []
    assert result.sharding.spec[0] == "i"
    np.testing.assert_allclose(result, derivative(jnp.square)(np.asarray(xs)), rtol=1e-5)
