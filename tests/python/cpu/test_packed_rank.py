"""Ranks, empty arrays, and vector and matrix elements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import DTYPES, FLOAT8, bits

ALL = {**DTYPES, **FLOAT8}

PACKED = [
    ("vector_1_float32", (1,)),
    ("vector_2_int8", (2,)),
    ("vector_3_float32", (3,)),
    ("vector_4_bool", (4,)),
    ("vector_3_float64", (3,)),
    ("vector_2_complex64", (2,)),
    ("matrix_2x2_bfloat16", (2, 2)),
    ("matrix_2x3_int32", (2, 3)),
    ("matrix_3x3_float32", (3, 3)),
    ("matrix_4x4_float64", (4, 4)),
    ("matrix_3x2_uint8", (3, 2)),
    ("vector_3_float8_e4m3fn", (3,)),
    ("matrix_2x2_float8_e5m2", (2, 2)),
]


def numbers(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("rank", range(9))
def test_ranks(ops, rank):
    x = numbers(*(2, 3, 1, 2, 1, 2, 3, 2)[:rank])
    out, shape = jax.jit(getattr(ops, f"rank_{rank}"))(x)
    assert bits(out) == bits(x + 1)
    assert bits(shape) == bits(np.array(x.shape, np.int64))


@pytest.mark.parametrize("rank", range(1, 9))
def test_an_empty_axis_anywhere(ops, rank):
    for axis in range(rank):
        shape = [2] * rank
        shape[axis] = 0
        out, seen = getattr(ops, f"rank_{rank}")(numbers(*shape))
        assert out.shape == tuple(shape)
        assert np.asarray(seen).tolist() == shape


@pytest.mark.parametrize("rank", range(9))
def test_no_other_rank_is_taken(ops, rank):
    function = getattr(ops, f"rank_{rank}")
    for other in {rank - 1, rank + 1} - {-1}:
        with pytest.raises(TypeError) as error:
            function(np.ones([1] * other, np.float32))
        text = f"fixture.rank_{rank}: parameter `x`: expected rank {rank}, "
        assert str(error.value).startswith(text)


def test_index_order(ops):
    i, j, k = np.indices((2, 3, 4), np.int32)
    assert bits(ops.indices(output_dims=(2, 3, 4))) == bits(100 * i + 10 * j + k)


def test_arrays_arrive_row_major(ops):
    x = numbers(3, 5)
    expected = bits(np.ascontiguousarray(x.T))
    assert bits(ops.transpose(x)) == expected
    assert bits(ops.transpose(np.asfortranarray(x))) == expected
    assert bits(ops.transpose(np.repeat(x, 2, axis=1)[:, ::2])) == expected
    # Here XLA would like to fuse the transposition into a layout.
    twice = jax.jit(lambda x: ops.transpose(x.T * 2).T / 2)
    assert bits(twice(x)) == bits(np.ascontiguousarray(x.T))


@pytest.mark.parametrize(("name", "packed"), PACKED)
def test_packed(ops, name, packed, x64):
    dtype = ALL[name.split("_", 2)[2]]
    for length in (5, 1, 0):
        x = numbers(length, *packed)
        x = (x % 2 if dtype.kind == "b" else x).astype(dtype)
        assert bits(jax.jit(getattr(ops, name))(x)) == bits(x[::-1].copy())


@pytest.mark.parametrize(("name", "packed"), PACKED)
def test_packed_dimensions_must_fit(ops, name, packed, x64):
    function, dtype = getattr(ops, name), ALL[name.split("_", 2)[2]]
    wrong = (*packed[:-1], packed[-1] + 1)
    with pytest.raises(TypeError) as error:
        function(np.zeros((5, *wrong), dtype))
    assert f"fixture.{name}: parameter `x`: expected the trailing dimensions" in str(error.value)
    assert str(packed) in str(error.value)
    assert str((5, *wrong)) in str(error.value)
    with pytest.raises(TypeError, match=rf"expected rank {1 + len(packed)}"):
        function(np.zeros(5, dtype))


def test_matrices_and_vectors(ops):
    m, v = numbers(4, 2, 3), numbers(4, 3)
    assert bits(ops.transform(m, v)) == bits(np.einsum("nij,nj->ni", m, v))
    with pytest.raises(ValueError, match=r"fixture\.transform: parameter `v`: axis 0 is `n` = 3"):
        ops.transform(m, v[:3])


def test_the_rule_leaves_packed_dimensions_out(ops):
    p = numbers(2, 4, 3)
    np.testing.assert_allclose(ops.lengths(p), np.linalg.norm(p, axis=-1), rtol=1e-6)


def test_one_packed_element(ops):
    p, count = ops.one_vector(jnp.array([3, 4], jnp.int32))
    assert np.asarray(p).tolist() == [6, 8]
    assert int(count) == 1
