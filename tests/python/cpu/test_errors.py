"""What goes wrong in a body, and what JAX says of it."""

import jax
import numpy as np
import pytest

x = np.arange(3, dtype=np.float32)

CODES = [
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
]


@pytest.fixture(autouse=True)
def silent_stdout(capfd):
    """Nothing is ever printed on stdout."""
    yield
    assert capfd.readouterr().out == ""


def failure(function, *args):
    """The message of the error that a call ends with."""
    # JAX makes a ValueError of what a program reports at once that has run before.
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as error:
        jax.block_until_ready(function(*args))
    return str(error.value)


@pytest.mark.parametrize(("number", "code"), list(enumerate(CODES, 1)))
def test_codes(ops, number, code):
    fail = jax.jit(ops.fail, static_argnums=(0, 1))
    for call in (ops.fail, fail):
        with pytest.raises(jax.errors.JaxRuntimeError) as error:
            jax.block_until_ready(call(number, f"words about {code}", x))
        assert str(error.value).startswith(f"{code}: fixture.fail: words about {code}")
        np.testing.assert_array_equal(call(0, "", x), x)


@pytest.mark.parametrize("message", ["", "two\nlines", "Größe 🦀", "100% {x} %s", "x" * 10_000])
def test_messages(ops, message):
    assert failure(ops.fail, 9, message, x).startswith(
        f"FAILED_PRECONDITION: fixture.fail: {message}"
    )


def test_the_same_program_goes_on(ops):
    square_root = jax.jit(lambda x: ops.square_root(x) + 1)
    for _ in range(3):
        np.testing.assert_array_equal(square_root(np.array([4, 9], np.float32)), [3, 4])
        text = failure(square_root, np.array([4, -9], np.float32))
        assert text.startswith("OUT_OF_RANGE: fixture.square_root: the square root of -9")


def test_an_error_inside_a_loop(ops):
    def program(x):
        return jax.lax.fori_loop(0, 5, lambda _, x: ops.square_root(x) - 1, x)

    text = failure(jax.jit(program), np.array([16], np.float32))
    assert text.startswith("OUT_OF_RANGE: fixture.square_root: the square root of ")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_error_on_one_of_several_devices(ops):
    function = jax.pmap(ops.square_root)
    good = np.ones((4, 2), np.float32)
    bad = good.copy()
    bad[2, 1] = -1
    for _ in range(3):
        np.testing.assert_array_equal(function(good), good)
        assert "fixture.square_root: the square root of -1" in failure(function, bad)


def test_errors_of_the_standard_library(ops):
    assert float(ops.parse_number("2.5")) == 2.5
    text = failure(ops.parse_number, "2,5")
    assert text.startswith("UNKNOWN: fixture.parse_number: invalid float literal")


def test_errors_of_other_types_with_their_sources(ops):
    assert int(ops.read_table("12")) == 12
    text = failure(ops.read_table, "1x")
    assert text.startswith(
        "UNKNOWN: fixture.read_table: the table is damaged: invalid digit found in string"
    )


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("str", "panicked: plain words"),
        ("string", 'panicked: the way is "string"'),
        ("value", "panicked: with a value that is not text"),
        ("explosive", "panicked: the value of the panic panicked itself"),
        ("index", "panicked: index out of bounds: the len is 3 but the index is 3"),
        ("unwrap", "panicked: called `Result::unwrap()` on an `Err` value: ParseFloatError"),
        ("task", "panicked: in piece 40"),
    ],
)
def test_panics(ops, way, message):
    panics = jax.jit(ops.panics, static_argnums=0)
    for call in (ops.panics, panics, panics):
        assert failure(call, way, x).startswith(f"INTERNAL: fixture.panics: {message}")
        np.testing.assert_array_equal(call("none", x), x)


def test_a_panic_in_one_batch_element(ops):
    seen = jax.vmap(lambda x, i: ops.lookup(x, i))
    text = failure(seen, np.ones((3, 2), np.float32), np.array([[0], [1], [-1]], np.int32))
    assert text.startswith("OUT_OF_RANGE: fixture.lookup: batch element 2: no entry -1")


def test_other_calls_of_the_program_are_not_blamed(ops):
    @jax.jit
    def program(x):
        return ops.softmax(x), ops.panics("str", x), ops.cumsum(x)

    text = failure(program, x)
    assert "fixture.panics" in text
    assert "fixture.softmax" not in text


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (
            lambda ops: ops.saxpy(2.0, np.arange(3, dtype=np.int32), x),
            TypeError,
            ["fixture.saxpy", "`x`", "expected dtype float32", "got int32"],
        ),
        (
            lambda ops: ops.saxpy(2.0, x, x[None]),
            TypeError,
            ["fixture.saxpy", "`y`", "expected rank 1", "got shape (1, 3)"],
        ),
        (
            lambda ops: ops.lengths(np.ones((2, 2, 4), np.float32)),
            TypeError,
            ["fixture.lengths", "`p`", "expected the trailing dimensions (3,)", "(2, 2, 4)"],
        ),
        (
            lambda ops: ops.matmul(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)),
            ValueError,
            ["fixture.matmul", "`b`", "axis 0 is `k` = 2", "`k` is 3 from axis 1 of `a`"],
        ),
        (
            lambda ops: ops.saxpy(2.0, x),
            TypeError,
            ["fixture.saxpy", "missing parameter `y`"],
        ),
        (
            lambda ops: ops.saxpy(),
            TypeError,
            ["fixture.saxpy", "missing parameters `a`, `x`, `y`"],
        ),
        (
            lambda ops: ops.saxpy(2.0, x, x, x),
            TypeError,
            ["fixture.saxpy", "takes 3 arguments (a, x, y)", "got 4"],
        ),
        (
            lambda ops: ops.saxpy(2.0, x, x, z=x),
            TypeError,
            ["fixture.saxpy", "unknown keyword `z`", "a, x, y, output_dims, vmap_method"],
        ),
        (
            lambda ops: ops.saxpy(2.0, x, x, a=1.0),
            TypeError,
            ["fixture.saxpy", "two values for parameter `a`"],
        ),
        (
            lambda ops: ops.softmax(x, out=x),
            TypeError,
            ["fixture.softmax", "`out` is an output"],
        ),
        (
            lambda ops: jax.jit(ops.saxpy)(2.0, x, x),
            TypeError,
            ["fixture.saxpy", "`a`", "static float32", "got a traced value", "rank 0"],
        ),
        (
            lambda ops: ops.saxpy([2.0], x, x),
            TypeError,
            ["fixture.saxpy", "`a`", "expected a float32", "got [2.0]"],
        ),
        (
            lambda ops: ops.one_int8(300),
            OverflowError,
            ["fixture.one_int8", "`value`", "300", "int8", "-128 to 127"],
        ),
        (
            lambda ops: ops.softmax([1.0, 2.0]),
            TypeError,
            ["fixture.softmax", "`x`", "expected a float32[:] array", "got [1.0, 2.0]", "asarray"],
        ),
        (
            lambda ops: ops.softmax(x, vmap_method="fastest"),
            ValueError,
            ["fixture.softmax", "vmap_method must be one of", "got 'fastest'"],
        ),
        (
            lambda ops: ops.softmax(x, output_dims=(1, 2)),
            ValueError,
            ["fixture.softmax", "`out`", "expected 1 dimension", "got (1, 2)"],
        ),
        (
            lambda ops: ops.echo_text(b"abc", 3),
            TypeError,
            ["fixture.echo_text", "`text`", "expected a str", "got b'abc'"],
        ),
        (
            lambda ops: ops.copy_float64(np.ones(2)),
            TypeError,
            ["fixture.copy_float64", "`x`", "float64", "jax_enable_x64"],
        ),
        (
            lambda ops: ops.softmax(None),
            TypeError,
            ["fixture.softmax", "`x`", "expected a float32[:] array", "got None"],
        ),
        (
            lambda ops: ops.softmax(jax.ShapeDtypeStruct((3,), np.float32)),
            TypeError,
            ["fixture.softmax", "`x`", "expected a float32[:] array", "got ", "jax.eval_shape"],
        ),
        (
            lambda ops: ops.increment(np.ones(1, np.int32)),
            TypeError,
            ["fixture.increment", "`y`", "expected rank 0, int32[]", "got shape (1,)"],
        ),
        (
            lambda ops: ops.one_vector(np.ones(3, np.int32)),
            TypeError,
            ["fixture.one_vector", "`p`", "trailing dimensions (2,), int32[2]", "got shape (3,)"],
        ),
        (
            lambda ops: ops.constrained(np.ones(6, np.float32), np.ones((3, 5), np.float32)),
            ValueError,
            ["fixture.constrained", "`rows`", "axis 1 must be 4", "got 5"],
        ),
        (
            lambda ops: ops.one_int32(2.5),
            TypeError,
            ["fixture.one_int32", "`value`", "expected an int32", "got 2.5", "not integral"],
        ),
        (
            lambda ops: ops.one_int32(True),
            TypeError,
            ["fixture.one_int32", "`value`", "expected an int32", "got True", "int(True)"],
        ),
        (
            lambda ops: ops.one_uint8(-1),
            OverflowError,
            ["fixture.one_uint8", "`value`", "-1", "out of range for uint8", "from 0 to 255"],
        ),
        (
            lambda ops: ops.one_bool(1),
            TypeError,
            ["fixture.one_bool", "`value`", "expected a bool", "got 1"],
        ),
        (
            lambda ops: ops.one_float32("2"),
            TypeError,
            ["fixture.one_float32", "`value`", "expected a float32", "got '2'"],
        ),
        (
            lambda ops: ops.one_float32(1e300),
            OverflowError,
            ["fixture.one_float32", "`value`", "1e+300", "out of range for float32"],
        ),
        (
            lambda ops: ops.one_complex64("1j"),
            TypeError,
            ["fixture.one_complex64", "`value`", "expected a complex64", "got '1j'"],
        ),
        (
            lambda ops: ops.slice_int8([1, 300], 2),
            OverflowError,
            ["fixture.slice_int8", "`values`[1]", "300", "-128 to 127"],
        ),
        (
            lambda ops: ops.slice_float32(3.0, 1),
            TypeError,
            ["fixture.slice_float32", "`values`", "expected a sequence of float32", "got 3.0"],
        ),
        (
            lambda ops: ops.slice_float32(np.ones((2, 2), np.float32), 2),
            ValueError,
            ["fixture.slice_float32", "`values`", "expected one axis", "got shape (2, 2)"],
        ),
        (
            lambda ops: ops.fixed_int32([1, 2]),
            ValueError,
            ["fixture.fixed_int32", "`values`", "expected 3 values", "got 2"],
        ),
        (
            lambda ops: ops.echo_text("\ud800", 3),
            ValueError,
            ["fixture.echo_text", "`text`", "not valid Unicode"],
        ),
        (
            lambda ops: ops.named_shapes(np.ones((2, 3), np.float32), output_dims={"e": 3}),
            ValueError,
            ["fixture.named_shapes", "output_dims", "no output is named 'e'", "c, d"],
        ),
        (
            lambda ops: ops.named_shapes(np.ones((2, 3), np.float32), output_dims={"d": -1}),
            ValueError,
            ["fixture.named_shapes", "output_dims of `d`", "cannot be negative", "got -1"],
        ),
        (
            lambda ops: ops.named_shapes(np.ones((2, 3), np.float32), output_dims={"d": True}),
            ValueError,
            ["fixture.named_shapes", "output_dims of `d`", "must be an integer", "got True"],
        ),
        (
            lambda ops: ops.iota(),
            ValueError,
            ["fixture.iota", "`out`", "no shape", "output_dims"],
        ),
        (
            lambda ops: jax.vmap(ops.declared_unbatched)(np.ones((2, 3), np.float32)),
            NotImplementedError,
            ["fixture.declared_unbatched", "vmap_method is None", "sequential"],
        ),
    ],
)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_at_trace_time(ops, compilations, call, error, parts, traced):
    with compilations() as counter, pytest.raises(error) as raised:
        if traced:
            jax.jit(lambda: call(ops)).lower()
        else:
            call(ops)
    text = str(raised.value)
    assert text.startswith(parts[0] + ": ")
    for part in parts:
        assert part in text
    assert counter.added == 0


@pytest.mark.parametrize(
    "place",
    [
        lambda f: jax.jit(f)(np.ones(3, np.int32)),
        lambda f: jax.vmap(f)(np.ones((2, 3), np.int32)),
        lambda f: jax.lax.map(f, np.ones((2, 3), np.int32)),
        lambda f: jax.lax.cond(True, f, f, np.ones(3, np.int32)),
        lambda f: jax.checkpoint(f)(np.ones(3, np.int32)),
        lambda f: jax.eval_shape(f, jax.ShapeDtypeStruct((3,), np.int32)),
    ],
    ids=["jit", "vmap", "map", "cond", "checkpoint", "eval_shape"],
)
def test_in_every_transformation(ops, compilations, place):
    # Outside the counted part: what these functions compile for themselves.
    place(lambda x: x)
    with compilations() as counter, pytest.raises(TypeError) as raised:
        place(ops.softmax)
    assert str(raised.value) == (
        "fixture.softmax: parameter `x`: expected dtype float32, got int32"
    )
    assert counter.added == 0
