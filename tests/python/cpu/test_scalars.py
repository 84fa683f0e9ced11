"""Static scalars: every type, every bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import DTYPES, bits, special

WIDE = [name for name in DTYPES if name not in ("bool", "complex64", "complex128")]


@pytest.mark.parametrize("name", DTYPES)
def test_one_value(ops, name):
    echo = getattr(ops, f"one_{name}")
    for value in special(name):
        assert bits(echo(value)) == bits(value), value


@pytest.mark.parametrize("name", DTYPES)
def test_python_values(ops, name):
    echo = getattr(ops, f"one_{name}")
    values = [True, False] if name == "bool" else [0, 1, 2.0, 3 if name[0] in "iu" else 0.25]
    for value in values:
        assert bits(echo(value)) == bits(np.array(value).astype(DTYPES[name]))


@pytest.mark.parametrize("name", DTYPES)
def test_slices(ops, name):
    echo, values = getattr(ops, f"slice_{name}"), special(name)
    for sequence in (values, list(values), tuple(values), values[:0], np.repeat(values, 100)):
        expected = np.array(sequence, DTYPES[name])
        assert bits(echo(sequence, len(sequence))) == bits(expected)


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_fixed_length(ops, name):
    echo, values = getattr(ops, f"fixed_{name}"), special(name)
    for start in range(len(values) - 2):
        three = values[start : start + 3]
        assert bits(echo(list(three))) == bits(three)
        assert bits(jax.jit(lambda three=three: echo(three))()) == bits(three)
    for wrong in (values[:2], values[:4], []):
        with pytest.raises(ValueError, match=rf"fixture\.fixed_{name}: parameter `values`: expec"):
            echo(wrong)


@pytest.mark.parametrize(
    "text", ["", "a", "two words", "Größe 漢字 🦀", 'quotes " and \\', "a\nb\tc", "null \0 byte"]
)
def test_text(ops, text):
    encoded = text.encode()
    assert bytes(np.asarray(ops.echo_text(text, len(encoded)))) == encoded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int64", 2**40),
        ("int64", -(2**63)),
        ("uint32", 2**32 - 1),
        ("uint64", 2**63),
        ("uint64", 2**64 - 1),
        ("float64", 1e300),
    ],
)
def test_wide_values_without_x64(ops, name, value):
    assert not jax.config.jax_enable_x64
    assert bits(getattr(ops, f"one_{name}")(value)) == bits(np.array(value, name))


def test_values_that_python_takes_for_equal(ops):
    for values in ([0.0, -0.0, 0.0], [1, 1.0, True and 1], [np.nan, -np.nan, np.nan]):
        for value in values:
            assert bits(ops.one_float32(value)) == bits(np.float32(value))
            assert bits(ops.one_float64(value)) == bits(np.float64(value))
            assert bits(ops.slice_float32([value], 1)) == bits(np.float32([value]))
    assert bits(ops.one_complex64(complex(0.0, -0.0))) == bits(np.complex64(complex(0.0, -0.0)))
    assert bits(ops.one_complex64(0)) == bits(np.complex64(0))


def test_each_call_has_its_own_value(ops):
    @functools.partial(jax.jit, static_argnames="a")
    def both(a, x):
        return ops.saxpy(a, x, x), ops.saxpy(3.0, x, x), ops.saxpy(a=-a, x=x, y=x)

    x = jnp.arange(3.0)
    for a in (2.0, 5.0, 2.0):
        expected = [(1 + factor) * np.arange(3.0) for factor in (a, 3.0, -a)]
        np.testing.assert_array_equal(both(a, x), expected)


def test_attributes_in_any_order(ops):
    x = np.array([1, 2, 3], np.float32)
    expected = [1.5, -2, 6, 5, 1, 0.75, 8, 9]
    by_position = ops.many(1.5, -2, x, "Mode!", True, [0.5, 0.25], [8, 9])
    by_name = ops.many(
        beta=b"\x08\x09",
        weights=np.array([0.5, 0.25]),
        mode="Mode!",
        x=x,
        flag=True,
        alpha=-2,
        zeta=1.5,
    )
    for result in (by_position, by_name):
        assert np.asarray(result).tolist() == expected


def test_no_operand_is_added(ops):
    x = jnp.ones(3)
    text = jax.jit(functools.partial(ops.saxpy, 0.1)).lower(x, x).as_text()
    (call,) = [line for line in text.splitlines() if "custom_call" in line]
    assert "(tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>" in call
    assert f"a = {np.float32(0.1).view(np.int32)} : i64" in call


@pytest.mark.parametrize("name", [name for name in DTYPES if "int" in name])
def test_integers_out_of_range(ops, name):
    limits = np.iinfo(name)
    for value in (limits.min - 1, limits.max + 1, 2**200, -(2**200)):
        with pytest.raises(OverflowError) as error:
            getattr(ops, f"one_{name}")(value)
        assert str(error.value).startswith(f"fixture.one_{name}: parameter `value`: ")
        assert f"out of range for {name}" in str(error.value)
        with pytest.raises(OverflowError, match=rf"fixture\.slice_{name}: parameter `values`\[1\]"):
            getattr(ops, f"slice_{name}")([0, value], 2)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_floats_out_of_range(ops, name):
    echo = getattr(ops, f"one_{name}")
    with pytest.raises(OverflowError, match=rf"fixture\.one_{name}: parameter `value`: .*inf"):
        echo(1e300)
    assert np.isposinf(np.asarray(echo(float("inf"))).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("one_int32", 2.5, "2.5"),
        ("one_int32", True, "True"),
        ("one_int32", "2", "'2'"),
        ("one_int32", None, "None"),
        ("one_int32", np.ones(2), "shape (2,)"),
        ("one_float32", "x", "'x'"),
        ("one_float32", 1j, "1j"),
        ("one_bool", 1, "1"),
        ("one_complex64", "1j", "'1j'"),
    ],
)
def test_wrong_kinds(ops, name, value, got):
    with pytest.raises(TypeError) as error:
        getattr(ops, name)(value)
    text = str(error.value)
    assert text.startswith(f"fixture.{name}: parameter `value`: expected ")
    assert name.removeprefix("one_") in text
    assert got in text


@pytest.mark.parametrize("name", WIDE)
def test_traced_scalars_are_refused(ops, name):
    echo = getattr(ops, f"one_{name}")
    with pytest.raises(TypeError) as error:
        jax.jit(echo)(1)
    text = str(error.value)
    assert text.startswith(f"fixture.one_{name}: parameter `value`: a static {name} must be known")
    assert "static_argnames" in text
    assert "rank 0" in text
