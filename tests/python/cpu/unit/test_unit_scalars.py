"""Encoding of static scalars: exact bits, strict types."""

import enum
import fractions
import math
import struct

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jax_callable._manifest import Param
from jax_callable._scalars import ArrayAttribute, encode, integer_value


def one(dtype, value):
    return encode("demo.f", Param("p", "scalar", dtype), value)


def many(dtype, value, length="slice"):
    return encode("demo.f", Param("p", "scalar", dtype, length=length), value)


def elements(attribute):
    return attribute.numpy().tolist()


def bits(fmt, value):
    return int.from_bytes(struct.pack(f"<{fmt}", value), "little")


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("dtype", "value", "attribute"),
    [
        ("bool", True, 1),
        ("bool", np.bool_(False), 0),
        ("int8", -128, -128),
        ("uint8", 255, 255),
        ("int32", np.int16(-5), -5),
        ("int32", 2.0, 2),
        ("int32", Colour.RED, 3),
        ("int32", np.array(7), 7),
        ("int32", jnp.int32(7), 7),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("int64", -(2**63), -(2**63)),
        ("uint64", 2**63 - 1, 2**63 - 1),
        ("uint64", 2**63, -(2**63)),
        ("uint64", 2**64 - 1, -1),
        ("float16", -1.5, bits("e", -1.5)),
        ("bfloat16", 1.5, bits("f", 1.5) >> 16),
        ("bfloat16", ml_dtypes.bfloat16(2.5), bits("f", 2.5) >> 16),
        ("float32", 0.1, bits("f", 0.1)),
        ("float32", 1, bits("f", 1.0)),
        ("float32", np.float64(0.1), bits("f", 0.1)),
        ("float32", ml_dtypes.bfloat16(2.5), bits("f", 2.5)),
        ("float32", fractions.Fraction(1, 2), bits("f", 0.5)),
        ("float32", -0.0, 2**31),
        ("float32", math.inf, bits("f", math.inf)),
        ("float32", math.nan, bits("f", math.nan)),
        ("float32", 1e-46, 0),
        ("float64", 1e300, bits("d", 1e300)),
        ("float64", -0.0, -(2**63)),
        ("float64", 2**53 + 1, bits("d", 2.0**53)),
        ("complex64", 1 - 2j, bits("f", 1.0) + ((bits("f", -2.0) << 32) - 2**64)),
        ("complex64", 3, bits("f", 3.0)),
        ("str", "h\u00e9\0", "h\u00e9\0"),
        ("str", "", ""),
    ],
)
def test_one_value(dtype, value, attribute):
    encoded = one(dtype, value)
    assert encoded == attribute
    assert type(encoded) is type(attribute)


def test_complex128_is_two_words():
    encoded = one("complex128", complex(math.inf, -0.0))
    assert encoded.dtype == "int64"
    assert elements(encoded) == [bits("d", math.inf), -(2**63)]


def test_payload_of_a_nan_survives():
    nan = np.array(0x7F812345, np.uint32).view(np.float32)
    assert one("float32", nan) == 0x7F812345
    assert elements(many("float32", nan.reshape(1))) == [0x7F812345]


def test_every_nan_is_the_same_attribute():
    assert one("float32", float("nan")) == one("float32", float("nan"))
    assert one("float32", 0.0) != one("float32", -0.0)
    assert one("float32", 1) == one("float32", 1.0) == one("float32", np.float32(1))


@pytest.mark.parametrize(
    ("dtype", "value", "words"),
    [
        ("float32", [1.0, 2], [bits("f", 1.0), bits("f", 2.0)]),
        ("float32", np.array([0.5, -1.0]), [bits("f", 0.5), bits("f", -1.0)]),
        ("float32", jnp.array([0.5]), [bits("f", 0.5)]),
        ("bfloat16", (1.5, -1.5), [0x3FC0, 0xBFC0]),
        ("int8", range(-1, 2), [-1, 0, 1]),
        ("int32", np.arange(6, dtype=np.int32)[::2], [0, 2, 4]),
        ("uint64", [2**64 - 1], [-1]),
        ("bool", [True, False], [1, 0]),
        ("complex64", [1j], [bits("f", 1.0) << 32]),
        ("complex128", [1 + 2j], [bits("d", 1.0), bits("d", 2.0)]),
        ("int32", [], []),
    ],
)
def test_slice(dtype, value, words):
    encoded = many(dtype, value)
    assert encoded.dtype == "int64"
    assert elements(encoded) == words


@pytest.mark.parametrize(
    "value", [b"\x01\xff", bytearray(b"\x01\xff"), [1, 255], np.uint8([1, 255])]
)
def test_bytes(value):
    assert many("uint8", value) == ArrayAttribute("uint8", b"\x01\xff")


def test_slices_compare_by_bytes():
    assert many("float32", [0.0]) != many("float32", [-0.0])
    assert many("float32", [math.nan]) == many("float32", [float("nan")])
    assert hash(many("float32", [math.nan])) == hash(many("float32", [float("nan")]))


def test_fixed_length():
    assert elements(many("int32", (1, 2, 3), 3)) == [1, 2, 3]
    with pytest.raises(ValueError, match=r"`p`: expected 3 values \(\[int32; 3\]\), got 2"):
        many("int32", (1, 2), 3)


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("int32", 2.5, "2.5, which is not integral"),
        ("int32", math.nan, "not integral"),
        ("int32", math.inf, "not integral"),
        ("int32", True, "True; write int"),
        ("int32", np.bool_(True), "True; write int"),
        ("int32", None, "expected an int32, got None"),
        ("int32", "3", "expected an int32, got '3' (str)"),
        ("int32", 1j, "(complex)"),
        ("int32", [1], "[1] (list)"),
        ("int32", np.array([1]), "an array of shape (1,)"),
        ("bool", 1, "expected a bool, got 1 (int)"),
        ("bool", np.int8(0), "expected a bool"),
        ("bool", "yes", "expected a bool"),
        ("float32", True, "True; write int"),
        ("float32", "1", "'1' (str)"),
        ("float32", b"1", "(bytes)"),
        ("float32", None, "None"),
        ("float32", 1j, "1j (complex)"),
        ("float32", np.datetime64(1, "s"), "expected a float32, got np.datetime64"),
        ("complex64", "1j", "(str)"),
        ("complex64", None, "None"),
        ("complex64", False, "False"),
        ("str", 3, "expected a str, got 3 (int)"),
        ("str", b"x", "expected a str"),
    ],
)
def test_wrong_type(dtype, value, text):
    with pytest.raises(TypeError) as error:
        one(dtype, value)
    assert str(error.value).startswith("demo.f: parameter `p`: ")
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 128),
        ("int8", np.int64(-129)),
        ("uint8", -1),
        ("int64", 2**63),
        ("uint64", 2**64),
        ("uint64", -1),
        ("int64", 1e30),
        pytest.param("int64", 10**5000, id="int64-huge"),
        ("float16", 70000),
        ("bfloat16", 1e39),
        ("float32", 1e39),
        pytest.param("float32", 10**400, id="float32-large"),
        pytest.param("float64", 10**400, id="float64-large"),
        pytest.param("float32", 10**5000, id="float32-huge"),
        ("complex64", 1e39j),
        pytest.param("complex64", 10**400, id="complex64-large"),
    ],
)
def test_out_of_range(dtype, value):
    with pytest.raises(OverflowError, match=r"^demo\.f: parameter `p`: .* is out of range for \w"):
        one(dtype, value)


@pytest.mark.parametrize("value", [3, None, "abc", b"ab", {1, 2}])
def test_slice_of_another_type(value):
    with pytest.raises(TypeError, match=r"`p`: expected a sequence of int32"):
        many("int32", value)


def test_errors_name_the_element():
    with pytest.raises(TypeError, match=r"`p`\[1\]: expected an int32, got 2\.5"):
        many("int32", [1, 2.5])
    with pytest.raises(OverflowError, match=r"`p`\[0\]: 300"):
        many("uint8", [300])
    with pytest.raises(ValueError, match=r"one axis.*\(1, 2\)"):
        many("int32", np.ones((1, 2), np.int32))


def test_string_that_is_no_unicode():
    with pytest.raises(ValueError, match=r"not valid Unicode"):
        one("str", "\ud800")


def test_value_of_an_integer_for_rules():
    def back(dtype, value):
        return integer_value(Param("p", "scalar", dtype), one(dtype, value))

    assert back("int32", -3) == -3
    assert back("uint64", 2**64 - 1) == 2**64 - 1
    assert back("float32", 1.0) is None
    assert back("bool", True) is None
    assert back("str", "x") is None
