"""Output shapes: by the attribute, by the first array, and by the call."""

import functools

import jax
import numpy as np
import pytest
from data import bits


def numbers(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def full(shape, value, dtype=np.float32):
    return bits(np.full(shape, value, dtype))


def test_by_name(ops):
    x = numbers(2, 3)
    c, d = jax.jit(ops.named_shapes)(x)
    assert bits(c) == full((2, 5), 15)
    assert bits(d) == full(3, -15)


def test_one_for_all(ops):
    c, d = ops.common_shape(numbers(2, 3))
    assert bits(c) == full((3, 2), 6)
    assert bits(d) == full((3, 2), 6, np.int32)


def test_a_number(ops):
    assert bits(ops.three(numbers(5))) == full(3, 10)


def test_the_first_array_without_packed_dimensions(ops):
    x = numbers(2, 3, 2)
    c, d = ops.first_array(2.0, x, numbers(5))
    assert bits(c) == bits(2 * x.sum(-1))
    assert bits(d) == full((2, 3, 3), 5, np.int32)


def test_the_first_array_may_be_an_in_out(ops):
    y, out = ops.first_in_out(numbers(4))
    assert bits(y) == full(4, 0)
    assert bits(out) == bits(numbers(4))


def test_no_rule_fits(ops):
    with pytest.raises(ValueError) as error:
        ops.other_rank(numbers(2, 3))
    text = str(error.value)
    assert text.startswith("fixture.other_rank: output `out` has rank 1, but the first array")
    assert "`x`" in text
    assert "output_dims={'out': ...}" in text
    with pytest.raises(ValueError, match=r"fixture\.iota: output `out` has no shape"):
        ops.iota()
    with pytest.raises(ValueError, match=r"fixture\.indices: output `out` has no shape"):
        jax.jit(ops.indices)()


@pytest.mark.parametrize(
    "given",
    [
        5,
        (5,),
        [5],
        np.int64(5),
        np.array(5),
        np.array([5]),
        {"out": 5},
        {"out": [5]},
        {"out": (np.uint8(5),)},
    ],
)
def test_forms(ops, given):
    iota = functools.partial(ops.iota, output_dims=given)
    for call in (iota, jax.jit(iota)):
        assert bits(call()) == bits(np.arange(5, dtype=np.int32))


def test_the_call_comes_first(ops):
    assert bits(ops.repeat(3, output_dims=5)) == full(5, 3)
    assert bits(ops.three(numbers(5), output_dims=0)) == full(0, 0)
    assert bits(ops.other_rank(numbers(2, 3), output_dims=2)) == full(2, 15)
    c, d = ops.common_shape(numbers(2, 3), output_dims=(4, 1))
    assert bits(c) == full((4, 1), 6)
    assert d.shape == (4, 1)
    assert ops.total(numbers(2, 3), output_dims=()).shape == ()


def test_outputs_that_the_call_leaves_out_follow_their_rule(ops):
    for given, shapes in (
        ({"d": 9}, [(2, 5), (9,)]),
        ({"c": (1, 1)}, [(1, 1), (3,)]),
        ({}, [(2, 5), (3,)]),
    ):
        assert [each.shape for each in ops.named_shapes(numbers(2, 3), output_dims=given)] == shapes


def test_both_conventions_for_packed_elements(ops):
    x = np.array([1, 2], np.float32)
    expected = bits(np.array([[i, 2, 3] for i in range(4)], np.float32))
    for given in (4, (4,), (4, 3), {"out": 4}, {"out": [4, 3]}):
        assert bits(ops.corners(x, output_dims=given)) == expected


def test_an_in_out_keeps_its_shape(ops):
    y, out = ops.first_in_out(numbers(4), output_dims={"out": 4})
    assert bits(out) == bits(numbers(4))
    assert bits(y) == full(4, 0)


@pytest.mark.parametrize(
    ("name", "given", "error", "text"),
    [
        ("corners", (4, 2), ValueError, "1 dimension, or 2 ending in (3,)"),
        ("corners", (2, 4, 3), ValueError, "got (2, 4, 3)"),
        ("three", (1, 2), ValueError, "expected 1 dimension"),
        ("three", (), ValueError, "got ()"),
        ("three", -1, ValueError, "cannot be negative, got -1"),
        ("three", True, ValueError, "must be an integer, got True"),
        ("three", 2.0, TypeError, "must be an integer, got 2.0"),
        ("three", "3", TypeError, "got '3'"),
        ("three", {"x": 3}, ValueError, "no output is named 'x'"),
        ("three", {"result": 3}, ValueError, "the outputs are out"),
        ("three", 2**63, OverflowError, "64-bit"),
    ],
)
def test_refused(ops, name, given, error, text):
    with pytest.raises(error) as raised:
        getattr(ops, name)(numbers(2), output_dims=given)
    assert str(raised.value).startswith(f"fixture.{name}: output_dims")
    assert text in str(raised.value)


def test_a_traced_size_is_refused(ops):
    with pytest.raises(TypeError, match=r"fixture\.iota: output_dims of `out`: .*traced"):
        jax.jit(lambda n: ops.iota(output_dims=n))(3)


def test_rules_of_python_code(ops):
    @jax.jit
    def pad(x):
        return ops.iota(output_dims=x.shape[0] // 2 + 1)

    assert [pad(numbers(n)).shape for n in (3, 8)] == [(2,), (5,)]
