"""`jax.export`, with the program run in another process."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jax_callable

RUN = """if True:
    import sys
    import jax, jax.export, jax_callable, numpy as np
    library, program, *shapes = sys.argv[1:]
    ops = jax_callable.load(library)
    # Calls that have nothing to do with the program, with other scalars.
    ones = np.ones(3, np.float32)
    for a in (100.0, 7.0):
        jax.block_until_ready((ops.saxpy(a, ones, ones), ops.echo_text("other", 5)))
    exported = jax.export.deserialize(bytearray(open(program, "rb").read()))
    for shape in shapes:
        x = np.arange(eval(shape), dtype=np.float32)
        results = exported.call(x)
        print(*[np.asarray(each).tolist() for each in jax.tree.leaves(results)])
"""


@pytest.fixture
def elsewhere(library, python, tmp_path):
    """Serialises an exported program, and runs it on 0., 1., .. of each size elsewhere."""

    def run(exported, *sizes):
        program = tmp_path / "program"
        program.write_bytes(exported.serialize())
        return python(RUN, library, program, *sizes).splitlines()

    return run


def export(ops, function, *arguments, **options):
    checks = jax_callable.disabled_checks(ops)
    return jax.export.export(jax.jit(function), disabled_checks=checks, **options)(*arguments)


def test_round_trip(ops, elsewhere):
    def program(x):
        y = ops.saxpy(-0.5, x, ops.cumsum(x))
        batched = jax.vmap(functools.partial(ops.lookup, x))(np.array([[0], [2]], np.int32))
        return y, batched, ops.repeat(2, output_dims=1), ops.echo_text("é", 2)

    x = np.arange(3, dtype=np.float32)
    (line,) = elsewhere(export(ops, program, x), 3)
    assert line == "[0.0, 0.5, 2.0] [[0.0], [2.0]] [2.0] [195, 169]"
    assert line == " ".join(str(np.asarray(each).tolist()) for each in program(x))


def test_each_program_has_its_own_scalars(ops, elsewhere):
    x = np.arange(3, dtype=np.float32)
    for a in (3.0, -0.0):
        exported = export(ops, functools.partial(ops.saxpy, a, y=x), x)
        assert elsewhere(exported, 3) == [str((np.float32(a) * x + x).tolist())]


def test_a_donated_in_out_and_empty_arrays(ops):
    def program(x):
        return ops.add_to(x, x), ops.cumsum(x[:0])

    exported = export(ops, program, np.ones(3, np.float32))
    read = jax.export.deserialize(exported.serialize())
    x = jnp.arange(3.0)
    for _ in range(2):
        total, empty = jax.jit(read.call)(x)
        np.testing.assert_array_equal(total, [0, 2, 4])
        assert empty.shape == (0,)
    np.testing.assert_array_equal(x, [0, 1, 2])
    donated = jax.jit(lambda x, y: read.call(x)[0] + y, donate_argnums=1)
    np.testing.assert_array_equal(donated(x, jnp.ones(3)), [1, 3, 5])


def test_effects_are_exported(ops, elsewhere):
    def program(x):
        ops.count_effectful(x)
        return x * 2

    exported = export(ops, program, np.zeros(2, np.float32))
    assert "has_side_effect = true" in exported.mlir_module()
    assert elsewhere(exported, 2) == ["[0.0, 2.0]"]


def test_the_check_is_needed(ops):
    with pytest.raises(ValueError, match=r"fixture\.softmax\."):
        jax.export.export(jax.jit(ops.softmax))(np.ones(3, np.float32))
    jax.export.export(
        jax.jit(ops.softmax), disabled_checks=jax_callable.disabled_checks(ops.softmax)
    )(np.ones(3, np.float32))


def symbolic(text, constraints=()):
    shape = jax.export.symbolic_shape(text, constraints=constraints)
    return jax.ShapeDtypeStruct(shape, np.float32)


def test_symbolic_sizes(ops, elsewhere):
    def program(x):
        matrix = ops.matmul(x[:, None], x[None, :])
        c, d = ops.named_shapes(matrix)
        halves = ops.iota(output_dims=x.shape[0] // 2)
        return c.sum(), d.shape[0] + 0 * d[0], ops.softmax(x * 0), halves, ops.rank_2(matrix)[1]

    lines = elsewhere(export(ops, program, symbolic("n")), 2, 5)
    assert lines == [
        "10.0 2.0 [0.5, 0.5] [0] [2, 2]",
        "5500.0 5.0 [0.20000000298023224, 0.20000000298023224, 0.20000000298023224, "
        "0.20000000298023224, 0.20000000298023224] [0, 1] [5, 5]",
    ]


def test_symbolic_rules(ops):
    exported = export(ops, functools.partial(ops.operators, 2), symbolic("n, m"))
    for n, m in ((5, 3), (2, 1), (8, 2)):
        results = exported.call(np.ones((n, m), np.float32))
        expected = ops.operators(2, np.ones((n, m), np.float32))
        for result, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, want)


def test_symbols_that_must_be_equal(ops):
    scope = jax.export.SymbolicScope()
    a, b = (
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope), np.float32)
        for text in ("n, k", "l, m")
    )
    with pytest.raises(ValueError) as error:
        export(ops, ops.matmul, a, b)
    text = str(error.value)
    assert text.startswith("fixture.matmul: parameter `b`: axis 0 is `k` = l, but `k` is k")
    assert "'l == k'" in text

    scope = jax.export.SymbolicScope(["l == k"])
    a, b = (
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope), np.float32)
        for text in ("n, k", "l, m")
    )
    exported = export(ops, ops.matmul, a, b)
    result = exported.call(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))
    np.testing.assert_array_equal(result, np.full((2, 4), 3))


def test_a_symbolic_size_is_no_scalar(ops):
    with pytest.raises(TypeError, match=r"fixture\.repeat: parameter `k`: .*symbolic dimension n"):
        export(ops, lambda x: ops.repeat(x.shape[0]), symbolic("n"))


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_symbolic_batches(ops, method):
    batched = jax.vmap(functools.partial(ops.softmax, vmap_method=method))
    exported = export(ops, batched, symbolic("b, n"))
    for shape in ((3, 4), (1, 2), (2, 5)):
        x = np.random.default_rng(1).random(shape, np.float32)
        np.testing.assert_array_equal(exported.call(x), batched(x))


def test_wrong_arrays_for_an_exported_program(ops):
    exported = export(ops, ops.softmax, np.ones(3, np.float32))
    for wrong in (np.ones(4, np.float32), np.ones(3, np.int32), np.ones((3, 1), np.float32)):
        with pytest.raises(ValueError):
            exported.call(wrong)
