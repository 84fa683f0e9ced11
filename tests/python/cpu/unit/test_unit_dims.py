"""Dimension rules over ints. Symbolic dimensions are tested with jax.export."""

import json
import pathlib

import jax
import pytest
from manifests import array, axis, dim, manifest, op, raw_target, scalar, scalar_value, target

from jax_callable._dims import Environment, bind, evaluate, output_shape
from jax_callable._manifest import Axis, Dim, Op, ScalarValue, parse

MAX = 2**63 - 1
MIN = -(2**63)


def env(scalars=None, dims=None, **shapes):
    bound = {name: (size, "here") for name, size in (dims or {}).items()}
    return Environment("demo.f", shapes, scalars or {}, bound)


def value(symbol, left, right):
    # The names let operands be negative, which an expression's value may not be.
    rule = Op(symbol, ScalarValue("l"), ScalarValue("r"))
    shifted = Op("+", rule, ScalarValue("shift"))
    return evaluate(shifted, env({"l": left, "r": right, "shift": 100}), "output `c`") - 100


@pytest.mark.parametrize(
    ("symbol", "left", "right", "expected"),
    [
        ("+", 2, 3, 5),
        ("-", 2, 3, -1),
        ("*", 4, 3, 12),
        ("/", 7, 2, 3),
        ("/", -7, 2, -4),
        ("/", 7, -2, -4),
        ("%", 7, 3, 1),
        ("%", -7, 3, 2),
        ("%", 7, -3, -2),
        ("div_ceil", 7, 2, 4),
        ("div_ceil", 6, 2, 3),
        ("div_ceil", -7, 2, -3),
        ("min", 3, -2, -2),
        ("max", 3, -2, 3),
    ],
)
def test_operators(symbol, left, right, expected):
    assert value(symbol, left, right) == expected


@pytest.mark.parametrize("symbol", ["/", "%", "div_ceil"])
def test_zero_divisor(symbol):
    with pytest.raises(ValueError, match=r"demo\.f: output `c`: .*divides by zero"):
        evaluate(Op(symbol, 7, Dim("n")), env(dims={"n": 0}), "output `c`")


def test_negative_result():
    with pytest.raises(ValueError, match=r"output `c`: axis 0: `n - 5` is -1"):
        evaluate(Op("-", Dim("n"), 5), env(dims={"n": 4}), "output `c`: axis 0")


@pytest.mark.parametrize(
    ("symbol", "left", "right"),
    [("+", MAX, 1), ("*", 2**32, 2**31), ("-", MIN, 1), ("/", MIN, -1), ("div_ceil", MIN, -1)],
)
def test_overflow_of_a_step(symbol, left, right):
    rule = Op("min", Op(symbol, ScalarValue("l"), ScalarValue("r")), 1)
    with pytest.raises(OverflowError, match=r"output `c`: .*64-bit"):
        evaluate(rule, env({"l": left, "r": right}), "output `c`")


def test_largest_value_is_in_range():
    assert evaluate(Op("+", MAX - 1, 1), env(), "output `c`") == MAX


def test_unsigned_scalar_beyond_i64():
    with pytest.raises(OverflowError, match=r"`k`"):
        evaluate(ScalarValue("k"), env({"k": 2**63}), "output `c`")


def test_axis_and_unbound_name():
    assert evaluate(Axis("a", 1), env(a=(2, 5)), "output `c`") == 5
    with pytest.raises(ValueError, match=r"no input binds the dimension `n`"):
        evaluate(Dim("n"), env(), "output `c`")


CASES = pathlib.Path(__file__).parents[3] / "dims.json"


def test_values_are_those_that_rust_has():
    cases = json.loads(CASES.read_text())
    assert len(cases) >= 400
    for case in cases:
        raw = raw_target("f", array("o", "output", dims=[case["rule"]]))
        rule = parse(json.dumps(manifest(raw)), "libdemo.so").targets[0].params[0].dims[0]
        n, m = case["shape"]
        here = env({"k": case["k"], "l": case["l"]}, {"n": n, "m": m}, x=case["shape"])
        try:
            got = evaluate(rule, here, "output `o`")
        except (ValueError, OverflowError):
            got = None
        assert got == case["value"], case


MATMUL = target(
    "matmul",
    array("a", rank=2, dims=[dim("n"), dim("k")]),
    array("b", rank=2, dims=[dim("k"), dim("m")]),
    array("c", "output", rank=2, dims=[dim("n"), dim("m")]),
)


def test_binding():
    here = env(a=(2, 3), b=(3, 4))
    bind(MATMUL, here)
    assert output_shape(MATMUL, MATMUL.outputs[0], here) == (2, 4)


def test_mismatch_names_both_places():
    with pytest.raises(ValueError, match=r"axis 0 is `k` = 5") as error:
        bind(MATMUL, Environment("quickstart.matmul", {"a": (2, 4), "b": (5, 3)}, {}))
    assert str(error.value) == (
        "quickstart.matmul: parameter `b`: axis 0 is `k` = 5, but `k` is 4 from axis 1 of `a`"
    )


def test_expression_on_an_input_may_use_a_later_binding():
    f = target(
        "f",
        scalar("k", "int32"),
        array("x", dims=[op("+", op("*", 2, dim("n")), scalar_value("k"))]),
        array("y", dims=[dim("n")]),
        array("z", rank=2, dims=[axis("x", 0), 3]),
    )
    bind(f, env({"k": 1}, x=(7,), y=(3,), z=(7, 3)))
    with pytest.raises(ValueError, match=r"parameter `x`: axis 0 must be 7 \(`2 \* n \+ k`\), got"):
        bind(f, env({"k": 1}, x=(8,), y=(3,), z=(8, 3)))
    with pytest.raises(ValueError, match=r"parameter `z`: axis 1 must be 3, got 4"):
        bind(f, env({"k": 1}, x=(7,), y=(3,), z=(7, 4)))


def test_first_array_gives_the_shape():
    f = target("f", scalar("a", "float32"), array("y", "in_out"), array("o", "output"))
    assert output_shape(f, f.outputs[0], env(y=(5,))) == (5,)


def test_first_array_of_another_rank():
    f = target("f", array("x", rank=2), array("o", "output"))
    with pytest.raises(ValueError, match=r"output `o` has rank 1, but the first array input `x`"):
        output_shape(f, f.outputs[0], env(x=(2, 3)))


def test_no_array_input():
    f = target("f", scalar("n", "int64"), array("o", "output"))
    with pytest.raises(ValueError, match=r"output `o` has no shape.*output_dims"):
        output_shape(f, f.outputs[0], env({"n": 3}))


def in_symbolic_scope(names, body, constraints=()):
    """Runs `body` on symbolic dimensions."""
    export = pytest.importorskip("jax.export", exc_type=ImportError)
    return body(*export.symbolic_shape(names, constraints=constraints))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%", "div_ceil", "min", "max"])
def test_symbolic_agrees_with_ints(symbol):
    def body(n, m):
        rule = Op(symbol, Op("+", Dim("n"), 10), Dim("m"))
        symbolic = evaluate(rule, env(dims={"n": n, "m": m}), "output `c`")
        # Tracing at real sizes shows what the symbolic size stands for.
        size = evaluate(rule, env(dims={"n": 4, "m": 3}), "output `c`")
        traced = jax.export.export(jax.jit(lambda x, y: jax.numpy.zeros(shape_of(rule, x, y))))(
            jax.ShapeDtypeStruct((n,), "float32"), jax.ShapeDtypeStruct((m,), "float32")
        )
        assert str(traced.out_avals[0].shape[0]) == str(symbolic)
        assert traced.call(jax.numpy.zeros(4), jax.numpy.zeros(3)).shape == (size,)

    def shape_of(rule, x, y):
        return (evaluate(rule, env(dims={"n": x.shape[0], "m": y.shape[0]}), "output `c`"),)

    in_symbolic_scope("n, m", body, constraints=["n >= m", "m >= 1"])


def test_symbolic_mismatch_says_which_constraint():
    def body(n, k, j, m):
        with pytest.raises(ValueError, match=r"constraints=\['j == k'\]"):
            bind(MATMUL, env(a=(n, k), b=(j, m)))

    in_symbolic_scope("n, k, j, m", body)
    in_symbolic_scope(
        "n, k, j, m",
        lambda n, k, j, m: bind(MATMUL, env(a=(n, k), b=(j, m))),
        constraints=["j == k"],
    )


def test_symbolic_sign():
    def body(n):
        assert str(evaluate(Op("-", Dim("n"), 5), env(dims={"n": n}), "output `c`")) == "n - 5"
        with pytest.raises(ValueError, match=r"is no size"):
            evaluate(Op("-", 0, Dim("n")), env(dims={"n": n}), "output `c`")

    in_symbolic_scope("n", body)
