"""In-outs and outputs of each element type, packed ones too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SCALARS = [
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]
PACKED = {
    "bool_4": (4,),
    "int8_16": (16,),
    "int32_2x2": (2, 2),
    "float16_4": (4,),
    "float32_1": (1,),
    "float32_3x2": (3, 2),
    "float64_3": (3,),
    "complex64_2": (2,),
}


def values(numbers, dtype, *shape, start=0):
    array = numbers(*shape, start=start)
    return jnp.asarray(array > 0 if dtype == "bool" else array).astype(dtype)


@pytest.mark.parametrize("name", [*SCALARS, *PACKED])
def test_in_outs_and_outputs(ops, x64, name, numbers):
    halves = ops[f"fixture_cuda.halves_{name}"]
    dtype, packed = name.split("_")[0], PACKED.get(name, ())
    for n in (1, 7, 1000, 0):
        x = values(numbers, dtype, n, *packed)
        y = values(numbers, dtype, n, *packed, start=5)
        expected = np.concatenate([np.asarray(x)[: n // 2], np.asarray(y)[n // 2 :]])
        for f in (halves, jax.jit(halves)):
            new_y, z = f(x, y)
            assert new_y.dtype == z.dtype == x.dtype
            np.testing.assert_array_equal(np.asarray(new_y), expected)
            np.testing.assert_array_equal(np.asarray(z), np.asarray(x))


@pytest.mark.parametrize("name", ["float16", "int32_2x2", "complex64_2"])
def test_batches_of_them(ops, name, numbers):
    halves = ops[f"fixture_cuda.halves_{name}"]
    dtype, packed = name.split("_")[0], PACKED.get(name, ())
    x = values(numbers, dtype, 5, 10, *packed)
    y = values(numbers, dtype, 10, *packed, start=5)
    new_y, z = jax.jit(jax.vmap(halves, in_axes=(0, None)))(x, y)
    rest = np.broadcast_to(np.asarray(y)[5:], (5, 5, *packed))
    np.testing.assert_array_equal(new_y, np.concatenate([np.asarray(x)[:, :5], rest], axis=1))
    np.testing.assert_array_equal(z, x)
