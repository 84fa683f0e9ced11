"""Dimension rules: what they accept, refuse and compute, in Python and again in the handler."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data import bits


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(("n", "k", "m"), [(2, 3, 4), (1, 1, 1), (5, 0, 2), (0, 3, 2), (2, 3, 0)])
def test_matmul(ops, n, k, m):
    random = np.random.default_rng(n + 10 * k + 100 * m)
    a = random.integers(-9, 9, (n, k)).astype(np.float32)
    b = random.integers(-9, 9, (k, m)).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(ops.matmul)(a, b), a @ b)


def test_an_unequal_dimension(ops):
    for call in (ops.matmul, jax.jit(ops.matmul), lambda a, b: jax.eval_shape(ops.matmul, a, b)):
        with pytest.raises(ValueError) as error:
            call(zeros(2, 3), zeros(4, 5))
        assert str(error.value) == (
            "fixture.matmul: parameter `b`: axis 0 is `k` = 4, but `k` is 3 from axis 1 of `a`"
        )


@pytest.mark.parametrize("n", [5, 6, 9])
@pytest.mark.parametrize("m", [0, 1, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_operators(ops, n, m, k):
    outputs = ops.operators(k, zeros(n, m))
    expected = {
        "a": (n + k, n - k),
        "b": (n * m, n // k),
        "c": (n % k, -(-n // k)),
        "d": (min(n, k), max(m, k)),
        "e": (m, k),
    }
    for output, shape in zip(outputs, expected.values(), strict=True):
        assert output.shape == shape
        # The body ran, on the shape that the handler checked.
        assert set(np.unique(output)) <= {np.prod(shape, dtype=int)}


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_division_of_negative_numbers_rounds_down(ops, k):
    for n, m in ((5, 3), (4, 1), (3, 3), (6, 4), (2, 6)):
        shape = (n - 2 * m) // k + 10, (m - n) % k, -(-(m - n) // k) + 10
        assert bits(ops.below_zero(k, zeros(n, m))) == bits(np.full(shape, k, np.int32))


@pytest.mark.parametrize(
    ("k", "text"),
    [
        (0, "output `b`: axis 1: `n / k` divides by zero"),
        (6, "output `a`: axis 1: `n - k` is -1, which is no size"),
        (-3, "output `b`: axis 1: `n / k` is -2, which is no size"),
        (-6, "output `a`: axis 0: `n + k` is -1, which is no size"),
    ],
)
def test_impossible_sizes(ops, k, text):
    for call in (ops.operators, jax.jit(ops.operators, static_argnums=0)):
        with pytest.raises(ValueError) as error:
            call(k, zeros(5, 2))
        assert str(error.value).startswith(f"fixture.operators: {text}")


def test_overflow(ops):
    assert ops.square_of(-3).shape == (9,)
    with pytest.raises(OverflowError, match=r"fixture\.square_of: output `out`: axis 0: `k \* k`"):
        ops.square_of(2**32)


@pytest.mark.parametrize("k", [2**63, 2**64 - 1])
def test_a_scalar_that_is_no_size(ops, k):
    with pytest.raises(OverflowError, match=r"fixture\.repeat: output `out`: axis 0: `k` is"):
        ops.repeat(k)


def test_scalars_give_sizes(ops):
    for k in (3, 0, 5, 3):
        assert bits(ops.repeat(k)) == bits(np.full(k, k, np.float32))


def test_expressions_and_numbers_on_inputs(ops):
    pairs, rows = np.arange(6, dtype=np.float32), np.ones((3, 4), np.float32)
    assert bits(ops.constrained(pairs, rows)) == bits(np.array([5, 9, 13], np.float32))


@pytest.mark.parametrize(
    ("pairs", "rows", "text"),
    [
        ((6,), (3, 5), "parameter `rows`: axis 1 must be 4, got 5"),
        ((7,), (3, 4), "parameter `pairs`: axis 0 must be 6 (`2 * n`), got 7"),
        ((6,), (4, 4), "parameter `pairs`: axis 0 must be 8 (`2 * n`), got 6"),
    ],
)
def test_inputs_that_break_a_rule(ops, pairs, rows, text):
    with pytest.raises(ValueError) as error:
        ops.constrained(zeros(*pairs), zeros(*rows))
    assert str(error.value) == f"fixture.constrained: {text}"


def test_checks_come_before_any_compilation(ops, compilations):
    a = jnp.asarray(zeros(2, 3))
    with compilations() as counter, pytest.raises(ValueError):
        jax.jit(lambda a: ops.matmul(a + 1, a))(a)
    assert counter.added == 0


def test_shapes_depend_on_the_call(ops):
    function = jax.jit(ops.matmul)
    for n in (2, 4, 2):
        assert function(zeros(n, 3), zeros(3, n)).shape == (n, n)
