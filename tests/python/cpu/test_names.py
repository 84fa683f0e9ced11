"""How targets are found and described: names, crates, signatures, documentation."""

import functools
import inspect
import pickle

import jax
import numpy as np
import pytest

import jax_callable

x = np.arange(3, dtype=np.float32)


def test_one_name_in_two_crates(ops):
    np.testing.assert_array_equal(ops.fixture.scale(x), 2 * x)
    np.testing.assert_array_equal(ops.fixture_dep.scale(x), 10 * x)
    with pytest.raises(AttributeError) as error:
        ops.scale  # noqa: B018 - looking it up is what fails
    assert "ops.fixture.scale" in str(error.value)
    assert "ops.fixture_dep.scale" in str(error.value)
    assert ops["fixture_dep.scale"] is ops.fixture_dep.scale
    assert "scale" not in dir(ops)


def test_a_crate_that_is_linked_and_never_named(ops):
    np.testing.assert_array_equal(ops.only_in_dep(x), x + 1)
    assert ops.only_in_dep is ops.fixture_dep.only_in_dep


def test_a_name_given_by_the_attribute(ops):
    np.testing.assert_array_equal(ops.renamed(x), 3 * x)
    assert not hasattr(ops, "original")


def test_unknown_names(ops):
    with pytest.raises(AttributeError, match=r"no target 'softmaxx'; did you mean 'softmax'\?"):
        ops.softmaxx  # noqa: B018
    with pytest.raises(KeyError, match=r"did you mean 'fixture\.softmax'"):
        ops["fixture.softmx"]
    with pytest.raises(AttributeError, match="no target 'softmax'"):
        ops.fixture_dep.softmax  # noqa: B018


def test_awkward_parameter_names(ops):
    scalars = dict(type=1, call=2, args=3, kwargs=4, target=5, größe=6, _hidden=7)
    arrays = dict(X=x, batch=10 * x, match=100 * x)
    match, result = ops.awkward(**scalars, **arrays)
    np.testing.assert_array_equal(result, 28 + 111 * x)
    np.testing.assert_array_equal(match, -28 - 111 * x)
    by_position = ops.awkward(*scalars.values(), *arrays.values())
    np.testing.assert_array_equal(by_position, (match, result))
    # Our own attributes come between theirs.
    by_name = functools.partial(ops.awkward, **scalars)
    for options in ({}, {"output_dims": 3}):
        batched = jax.vmap(functools.partial(by_name, **options))
        results = batched(**{name: array[None] for name, array in arrays.items()})
        np.testing.assert_array_equal([each[0] for each in results], (match, result))
        np.testing.assert_array_equal(by_name(**arrays, **options), (match, result))
    assert list(ops.awkward.signature.parameters)[:-2] == [*scalars, *arrays]


def test_signature_and_documentation(ops):
    assert str(inspect.signature(ops.mixed)) == (
        "(scale: float32, a: float32[n], b: float32[n], c: int32[m], d: int32[m], *, "
        "output_dims=None, vmap_method='broadcast_all') -> (float32[n], int32[m], float32[n, m])"
    )
    assert ops.documented.__doc__.startswith(
        'Lines of a doc comment,\n\nwith *markup*, "quotes", a \\ and ümlauts.\n'
    )
    assert ops.matmul.__doc__.startswith("c <- a b.\n")


def test_the_table_has_every_target(ops):
    lines = str(ops).splitlines()
    names = {line.split()[0] for line in lines[2:]}
    assert len(lines) - 2 == len(ops) == len(jax_callable.targets(ops))
    assert {"saxpy", "fixture.scale", "fixture_dep.scale", "renamed", "rank_8"} <= names
    (saxpy,) = [line for line in lines if line.startswith("saxpy ")]
    assert "(a: float32, x: float32[:], y: float32[:] in-out) -> y" in saxpy
    assert "tests/fixture/src/scalars.rs:" in saxpy


def test_source_positions(ops, request):
    for target in jax_callable.targets(ops):
        (handler,) = target.handlers
        source = (request.path.parents[3] / handler.file).read_text(encoding="utf-8")
        line = source.splitlines()[handler.line - 1]
        # Where a macro writes the function, the name is where the macro is told of it.
        assert target.name in line or target.name == "renamed"
        assert handler.module.split("::")[0] == target.crate


def test_target_names(ops):
    for target in jax_callable.targets(ops):
        crate, name, digits = target.target.split(".")
        assert (crate, name) == (target.crate, target.name)
        assert len(digits) == 8
        int(digits, 16)
    assert len({target.target for target in jax_callable.targets(ops)}) == len(ops)


def test_pickles(ops):
    assert pickle.loads(pickle.dumps(ops)) is ops
    assert pickle.loads(pickle.dumps(ops.saxpy)) is ops.saxpy
    assert pickle.loads(pickle.dumps(ops.fixture_dep.scale)) is ops.fixture_dep.scale


def test_pickles_in_another_process(ops, python, tmp_path):
    functions = [ops.softmax, functools.partial(ops.saxpy, 2.0, np.zeros(3, np.float32))]
    file = tmp_path / "functions"
    file.write_bytes(pickle.dumps((ops, functions)))
    code = """if True:
        import pickle, sys
        import numpy as np
        with open(sys.argv[1], "rb") as file:
            ops, functions = pickle.load(file)
        assert ops.softmax is functions[0]
        for function in functions:
            print(np.asarray(function(np.zeros(3, np.float32) + 1)).sum().round(3))
    """
    assert python(code, file).split() == ["1.0", "3.0"]


def test_defaults_of_the_attribute(ops):
    target = ops.documented.target
    assert target.name == "documented"
    assert target.vmap_method == "broadcast_all"
    assert target.batch_dims == ()
    assert target.vjp is None
    assert not target.has_side_effect
    assert [param.role for param in target.params] == ["input", "output"]
    (handler,) = target.handlers
    assert handler.scratch == ()
    options = dict(handler.options)
    assert (options.pop("graph_mode"), options.pop("preload")) == ("Jax", "CurrentDevice")
    assert not any(options.values()), options
    assert {"stage_in", "stage_out", "graph_cache_max", "modules", "state"} <= options.keys()


def test_keys_are_carried(ops):
    target = ops.keyed.target
    assert target.batch_dims == ("n",)
    assert target.vjp == ("fixture", "keyed_vjp")
    (handler,) = target.handlers
    assert handler.options["graph_mode"] == "Jax"
    assert handler.options["graph_cache_max"] == 8
    assert handler.options["preload"] == "AllDevices"
    (plain,) = ops.documented.target.handlers
    assert ops.documented.target.vjp is None
    assert plain.options["graph_cache_max"] is None
    assert plain.options["preload"] == "CurrentDevice"
    # And the function is right, batched too.
    points = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.testing.assert_array_equal(jax.vmap(ops.keyed)(points), points)
