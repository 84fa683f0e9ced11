"""Products by cuBLAS, in captures too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DTYPES = {
    "f32": ("float32", 1e-5),
    "f64": ("float64", 1e-13),
    "f16": ("float16", 2e-3),
    "bf16": ("bfloat16", 2e-2),
    "c64": ("complex64", 1e-5),
    "c128": ("complex128", 1e-13),
}


def matrix(seed, *shape, dtype="float32"):
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.normal(size=shape)
    return jnp.asarray(values, dtype)


def close(got, expected, tolerance):
    got, expected = np.asarray(got, np.complex128), np.asarray(expected, np.complex128)
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= tolerance * np.linalg.norm(expected)


def exact(*factors):
    product = np.asarray(factors[0], np.complex128)
    for factor in factors[1:]:
        product = product @ np.asarray(factor, np.complex128)
    return product


@pytest.mark.parametrize("name", DTYPES)
def test_every_type(ops, x64, name):
    dtype, tolerance = DTYPES[name]
    a, b = matrix(1, 33, 65, dtype=dtype), matrix(2, 65, 17, dtype=dtype)
    c, _ = getattr(ops, f"gemm_{name}")(a, b)
    assert c.dtype == dtype
    close(c, exact(a, b), tolerance)


def test_factors_and_transposes(ops):
    a, b, c = matrix(1, 5, 7), matrix(2, 3, 5), matrix(3, 7, 3)
    for alpha, beta in [(1.0, 0.0), (-2.0, 0.5), (0.0, 3.0)]:
        got, _ = ops.gemm_transposed(alpha, beta, a, b, c)
        close(got, alpha * exact(a.T, b.T) + beta * np.asarray(c), 1e-5)


def test_stacks(ops):
    a = matrix(4, 6, 8, 8, dtype="complex64")
    c, _ = ops.gemm_stack(a)
    close(c, exact(np.conj(np.swapaxes(a, 1, 2)), a), 1e-5)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 3), (3, 0)), ((2, 0), (0, 3))])
def test_no_elements(ops, shapes):
    a, b = (jnp.ones(shape, jnp.float32) for shape in shapes)
    c, _ = ops.gemm_f32(a, b)
    np.testing.assert_array_equal(c, np.zeros((shapes[0][0], shapes[1][1])))


def test_an_empty_workspace(ops):
    a = jnp.ones((2, 2), jnp.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the workspace for cuBLAS is empty"):
        jax.block_until_ready(ops.gemm_without_workspace(a))


def test_under_vmap_and_between_products_of_xla(ops):
    a, b = matrix(1, 4, 16, 16), matrix(2, 16, 16)

    @jax.jit
    @jax.vmap
    def f(a):
        return ops.gemm_f32(jnp.dot(a, b, precision="highest"), b)[0]

    for _ in range(4):
        got = f(a + 0)
    close(got, exact(a, b, b), 1e-5)


CAPTURED = """
random = np.random.default_rng(1)
a = jnp.asarray(random.normal(size=(64, 64)) / 8, jnp.float32)

@jax.jit
def f(x):
    def step(x, _):
        x = ops.gemm_f32(x, a)[0]
        return jnp.dot(x, a, precision="highest"), None
    return jax.lax.scan(step, x, length=3)[0]

worst = 0.0
for i in range(6):
    x = jnp.asarray(random.normal(size=(64, 64)), jnp.float32)
    expected = np.asarray(x, np.float64)
    for _ in range(6):
        expected = expected @ np.asarray(a, np.float64)
    error = np.linalg.norm(np.asarray(f(x)) - expected) / np.linalg.norm(expected)
    worst = max(worst, error)
print(worst)
"""


def test_in_captures(python):
    assert float(python(CAPTURED, capture=True)) < 1e-5
