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
    ],
)
def test_at_trace_time(ops, compilations, call, error, parts):
    with compilations() as counter, pytest.raises(error) as raised:
        call(ops)
    text = str(raised.value)
    assert text.startswith(parts[0] + ": ")
    for part in parts:
        assert part in text
    assert counter.added == 0
