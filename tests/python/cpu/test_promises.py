"""`jax_callable.check_batch_dims`: promises kept and broken."""

import jax
import numpy as np
import pytest

import jax_callable
from jax_callable import PromiseError


def shape(*sizes, dtype=np.float32):
    return jax.ShapeDtypeStruct(sizes, dtype)


KEPT = {
    "dense": [shape(7, 3), shape(2, 3), shape(2)],
    "normalise": [shape(2, 5)],
    "gather": [shape(4), np.array([3, 0, 2, 1, 1, 0], np.int32)],
    "scaled_sum": [0.5, shape(5), np.arange(5, dtype=np.float32)],
    "scale_rows": [shape(), shape(4), shape(4, 3)],
    "turn": [shape(5, 2, 2), shape(5, 2)],
    "sorted_medians": [shape(6, 5)],
    "apart": [shape(3), shape(4)],
    "second_name": [7, shape(3, dtype=np.int32), shape(4, dtype=np.int32)],
    "steps": [shape(3, 2)],
    "effectful_rows": [shape(3, 2)],
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(ops, name):
    jax_callable.check_batch_dims(getattr(ops, name), *KEPT[name])


def test_broken(ops):
    with pytest.raises(
        PromiseError,
        match=r"^fixture\.broken_softmax: .* `n` is independent, but `out` depends on more: "
        r"run on `n` = 0\.\.1 alone, it has 1\.0 at \[0\] where the whole has 0\.\d+",
    ):
        jax_callable.check_batch_dims(ops.broken_softmax, shape(5))
    with pytest.raises(PromiseError, match=r"`n` .*`sum` depends on more: run on `n` = 1\.\.2"):
        jax_callable.check_batch_dims(ops.broken_cumsum, shape(3, 2, dtype=np.int32))
    # A result without the dimension.
    with pytest.raises(PromiseError, match=r"`m` .*`out` depends on more: run on `m` = 0\.\.1"):
        jax_callable.check_batch_dims(ops.broken_bystander, shape(3), shape(4))


def test_seeds_choose_the_numbers(ops):
    def message(**options):
        with pytest.raises(PromiseError) as error:
            jax_callable.check_batch_dims(ops.broken_softmax, x=shape(9), **options)
        return str(error.value)

    assert message() == message(seed=0)
    assert message() != message(seed=1)


def test_tolerance(ops):
    almost = np.array([80, 0, 0], np.float32)  # whose exponentials are 1 and nothing
    with pytest.raises(PromiseError):
        jax_callable.check_batch_dims(ops.broken_softmax, almost, rtol=0.5)
    jax_callable.check_batch_dims(ops.broken_softmax, almost, rtol=1.0)


def test_a_piece_that_fails(ops):
    with pytest.raises(PromiseError, match=r"needs_three: it fails when run on `n` = 0\.\.1 alone"):
        jax_callable.check_batch_dims(ops.needs_three, shape(3))


def test_nothing_to_check(ops):
    with pytest.raises(ValueError, match=r"fixture\.softmax: it has no batch_dims"):
        jax_callable.check_batch_dims(ops.softmax, shape(3))
    with pytest.raises(ValueError, match=r"cut along `n`: give arrays in which it is 2 or more"):
        jax_callable.check_batch_dims(ops.normalise, shape(1, 3))
    with pytest.raises(TypeError, match=r"missing parameter `x`"):
        jax_callable.check_batch_dims(ops.normalise)
