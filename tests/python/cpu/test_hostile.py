"""Programs that other hands wrote: wrong operands, results and attributes reach the handler.

What a handler gets from an exported program or another host was checked by no Python of ours.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(3, dtype=np.float32)


def like(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.fixture
def raw(ops):
    """Calls a target as an HLO program may, past all checks of the Python package."""

    def call(name, results, *operands, aliases=None, **attributes):
        target = getattr(ops, name).target.target
        function = jax.ffi.ffi_call(target, results, input_output_aliases=aliases)
        program = jax.jit(lambda *operands: function(*operands, **attributes))
        return jax.block_until_ready(program(*operands))

    return call


@pytest.fixture
def refused(raw, ops):
    """Asserts that a call ends with INVALID_ARGUMENT, the target's name and some words."""

    def check(name, *args, words, **attributes):
        with pytest.raises(jax.errors.JaxRuntimeError) as error:
            raw(name, *args, **attributes)
        text = str(error.value)
        assert text.startswith(f"INVALID_ARGUMENT: fixture.{name}: ")
        for word in words:
            assert word in text, text
        # Nothing is broken for others.
        np.testing.assert_array_equal(ops.cumsum(X), np.cumsum(X))

    return check


def bits(value, dtype):
    return np.int64(np.array(value, dtype).view(f"uint{8 * np.dtype(dtype).itemsize}"))


def test_a_right_program_is_served(raw):
    (result,) = raw("saxpy", [like(3)], X, X, aliases={1: 0}, a=bits(2, np.float32))
    np.testing.assert_array_equal(result, 3 * X)
    # Without the alias: the handler copies the in-out itself.
    (result,) = raw("saxpy", [like(3)], X, X, a=bits(2, np.float32))
    np.testing.assert_array_equal(result, 3 * X)
    result = raw("total", like(2), np.ones((2, 3, 4), np.float32), **{"jc.batch": "1"})
    np.testing.assert_array_equal(result, [12, 12])


@pytest.mark.parametrize(
    "dtype", [np.float16, np.int32, np.uint8, bool, np.complex64, jnp.float8_e4m3fn]
)
def test_element_types(refused, dtype):
    wrong = X.astype(dtype)
    name = np.dtype(dtype).name
    refused("softmax", like(3), wrong, words=["`x`", "expected float32[?]", f"got {name}[3]"])
    refused(
        "softmax", like(3, dtype=dtype), X, words=["`out`", "expected float32[?]", f"got {name}"]
    )


@pytest.mark.parametrize("dtype", [jnp.uint4, jnp.int4])
def test_element_types_that_we_do_not_know(refused, dtype):
    refused("softmax", like(3), jnp.asarray(X, dtype), words=["`x`", "unsupported element type"])


@pytest.mark.parametrize("shape", [(), (1, 3), (3, 1, 1)])
def test_ranks(refused, shape):
    refused("softmax", like(3), np.ones(shape, np.float32), words=["`x`", "expected float32[?]"])
    refused("softmax", like(*shape), X, words=["`out`", "expected float32[?]"])


@pytest.mark.parametrize("shape", [(2, 4), (4, 3, 1), (3,), (0, 2)])
def test_packed_dimensions(refused, shape):
    refused("vector_3_float32", like(2, 3), np.ones(shape, np.float32), words=["`x`", "[?, 3]"])


def test_numbers_of_operands_and_results(refused):
    refused("softmax", like(3), words=["expected 1 operands, got 0"])
    refused("softmax", like(3), X, X, words=["expected 1 operands, got 2"])
    refused("softmax", [like(3), like(3)], X, words=["expected 1 results, got 2"])
    refused("named_shapes", [like(2, 5)], np.ones((2, 3), np.float32), words=["2 results, got 1"])


def test_shapes_of_results(refused, raw):
    for size in (2, 4, 1):
        refused("softmax", like(size), X, words=["`out`", "[3]", f"[{size}]"])
    refused("three", like(4), X, words=["`out`", "axis 0", "3", "got 4"])
    # As the caller of `output_dims` says.
    given = raw("three", like(4), X, **{"jc.output_dims": "call"})
    np.testing.assert_array_equal(given, [3] * 4)
    matrix = np.ones((2, 3), np.float32)
    refused("matmul", like(3, 2), matrix, matrix.T, words=["`c`", "axis 0", "2", "got 3"])


def test_dimensions_of_operands(refused):
    a, b = np.ones((2, 3), np.float32), np.ones((4, 2), np.float32)
    refused("matmul", like(2, 2), a, b, words=["`b`", "axis 0", "`k`"])
    # Also where the shapes of the results were given.
    refused("matmul", like(2, 2), a, b, words=["`k`"], **{"jc.output_dims": "call"})
    rows = np.ones((2, 5), np.float32)
    refused("constrained", like(2), np.ones(4, np.float32), rows, words=["`rows`", "4", "5"])
    refused(
        "constrained", like(2), np.ones(5, np.float32), rows[:, :4], words=["`pairs`", "4", "5"]
    )


def test_in_outs(refused):
    a = bits(2, np.float32)
    refused("saxpy", like(4), X, X, words=["`y`", "[3]", "[4]"], a=a)
    refused("saxpy", like(3, dtype=np.int32), X, X, words=["`y`", "float32", "int32"], a=a)


def test_missing_attributes(refused):
    refused("saxpy", like(3), X, X, words=["`a`", "missing"])
    refused("echo_text", like(1, dtype=np.uint8), words=["`text`", "missing"], count=np.int64(1))
    # As many as there should be, but others.
    for name in ("A", "b", "jc", "jc.a", "é"):
        refused("saxpy", like(3), X, X, words=["`a`", "missing"], **{name: bits(2, np.float32)})
    for names in (("grain", "lem"), ("grain", "a"), ("a", "b"), ("len", "grains")):
        wrong = "len" if "len" not in names else "grain"
        values = dict.fromkeys(names, np.int64(1))
        refused("visits", like(2, dtype=np.uint32), words=[f"`{wrong}`", "missing"], **values)


def test_extra_attributes(refused):
    refused("softmax", like(3), X, words=["`extra`"], extra=np.int64(1))
    for name in ("A", "b", "jc.other", "a.b"):
        extra = {name: np.int64(1)}
        refused("saxpy", like(3), X, X, words=[f"`{name}`"], a=bits(1, np.float32), **extra)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(2),
        np.float64(2),
        np.int32(2),
        np.uint64(2),
        True,
        "2",
        np.array([2]),
        np.array([2], np.uint8),
        {"nested": np.int64(1)},
        np.int64(-1),
        np.int64(2**32),
        np.array([], np.int64),
    ],
    ids=str,
)
def test_attributes_of_other_types(refused, value):
    refused("saxpy", like(3), X, X, words=["`a`"], a=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("one_bool", np.int64(2)),
        ("one_bool", np.int64(-1)),
        ("one_int8", np.int64(128)),
        ("one_uint16", np.int64(-1)),
        ("one_float16", np.int64(1 << 16)),
        ("one_complex128", np.int64(1)),
        ("one_complex128", np.array([1, 2, 3])),
        ("one_int64", "text"),
        ("fixed_int32", np.array([1, 2])),
        ("fixed_int32", np.array([1, 2, 2**31])),
        ("fixed_bool", np.array([0, 1, 2])),
        ("fixed_uint8", np.array([1, 2, 3])),
        ("fixed_uint8", np.array([1, 2], np.uint8)),
        ("fixed_complex128", np.array([1, 2, 3, 4, 5])),
        ("fixed_float32", np.array([1.0, 2.0, 3.0], np.float32)),
        ("fixed_int32", np.int64(1)),
    ],
)
def test_values_that_no_scalar_has(refused, ops, name, value):
    (output,) = getattr(ops, name).target.outputs
    shape = (3,) if name.startswith("fixed") else ()
    result = like(*shape, dtype=output.dtype)
    key = "value" if name.startswith("one") else "values"
    refused(name, result, words=[f"`{key}`"], **{key: value})


@pytest.mark.parametrize(
    "batch",
    ["", "1,", ",1", "2", "1,1", "11", "x", "1 ", "-1", "1" * 33, "1" * 100_000, ",", "1,0,1", "é"],
)
def test_descriptions_of_batches(refused, batch):
    shape = np.ones((2, 3, 4), np.float32)
    refused("total", like(2), shape, words=[], **{"jc.batch": batch})


def test_batches_that_the_arrays_do_not_have(refused, raw):
    batch = {"jc.batch": "1,0"}
    table, index = np.ones((2, 4), np.float32), np.zeros((1, 5), np.int32)
    result = raw("lookup", like(2, 5), table, index, **batch)
    np.testing.assert_array_equal(result, np.ones((2, 5)))
    refused("lookup", like(3, 5), table, index, words=["`table`", "[2]", "[3]"], **batch)
    refused("lookup", like(2, 5), table, np.zeros((2, 5), np.int32), words=["`index`"], **batch)
    refused("lookup", like(1, 5), table, index, words=["`table`"], **batch)
    refused("lookup", like(2, 5), table[0], index, words=["`table`"], **batch)
    none = np.zeros((0, 4), np.float32)
    refused("lookup", like(2, 5), none, index, words=["`table`"], **batch)
    # An in-out has an element of its own in every batch element.
    x, total = np.ones((1, 3, 4), np.float32), np.ones((1, 3), np.float32)
    refused("row_sums", like(1, 3), x, total, words=["`total`", "all batch axes"], **batch)


@pytest.mark.parametrize("value", ["", "calls", "rule ", np.int64(1), True])
def test_other_values_of_output_dims(refused, value):
    refused("softmax", like(3), X, words=["`jc.output_dims`"], **{"jc.output_dims": value})


@pytest.mark.parametrize("value", [np.int64(1), True, np.array([1]), np.float32(1)])
def test_other_types_of_batch(refused, value):
    refused("softmax", like(3), X, words=["`jc.batch`"], **{"jc.batch": value})


def test_rules_that_a_scalar_breaks(refused):
    matrix = np.ones((2, 3), np.float32)
    results = [like(1, 1, dtype=np.int32)] * 5
    refused("operators", results, matrix, words=["`a`", "axis 0", "2", "got 1"], k=np.int64(0))
    results[0] = like(2, 2, dtype=np.int32)
    refused("operators", results, matrix, words=["`b`", "axis 0", "6", "got 1"], k=np.int64(0))
    results[1] = like(6, 1, dtype=np.int32)
    refused("operators", results, matrix, words=["`b`", "axis 1", "zero"], k=np.int64(0))
    one = like(1, dtype=np.uint8)
    for k in (2**32, -(2**63)):
        refused("square_of", one, words=["`out`", "axis 0", "overflows"], k=np.int64(k))
    refused("repeat", like(1), words=["`out`", "axis 0", "too large"], k=np.int64(-1))
