"""One target on the CPU and on a GPU by turns, in one process."""

import functools

import jax
import numpy as np
import pytest


def names(device):
    return device.platform


def objects(device):
    return device


@pytest.mark.parametrize("given", [objects, names])
def test_default_devices_by_turns(ops, gpus, cpu, given, numbers):
    x, y = numbers(100), numbers(100, start=3)
    f = jax.jit(functools.partial(ops.saxpy, 2.0))
    for i in range(6):
        device = [cpu, gpus[0]][i % 2]
        with jax.default_device(given(device)):
            for result in (ops.saxpy(2.0, x, y), f(x, y)):
                assert result.devices() == {device}
                np.testing.assert_array_equal(result, 2 * x + y)


def test_committed_arrays_go_before_the_default_device(ops, gpus, cpu, numbers):
    x, y = numbers(100), numbers(100, start=3)
    f = jax.jit(functools.partial(ops.saxpy, 2.0))
    for default in (cpu, gpus[0], cpu):
        for device in (gpus[0], cpu):
            placed = jax.device_put((x, y), device)
            with jax.default_device(default):
                for result in (ops.saxpy(2.0, *placed), f(*placed)):
                    assert result.devices() == {device}
                    np.testing.assert_array_equal(result, 2 * x + y)


def test_a_result_goes_on_to_the_other_device(ops, gpus, cpu, numbers):
    x, start = numbers(100), numbers(100, start=3)
    y = start
    for i in range(6):
        device = [cpu, gpus[0]][i % 2]
        y = ops.saxpy(1.0, *jax.device_put((x, y), device))
    np.testing.assert_array_equal(y, start + 6 * x)
