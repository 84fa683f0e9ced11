"""Graphs of our own: how many are kept, and when they go."""

import functools
import gc

import jax
import numpy as np
import pytest
from graphs import changes, check_mix
from memory import device_bytes, host_bytes


def test_limits(op, numbers):
    mix = op("mix")
    f = jax.jit(functools.partial(mix, 2.0))

    def call(size):
        check_mix(f, *(numbers(size, start=j) for j in range(4)))

    mix.graphs.max = 2
    assert mix.graphs.max == 2
    for size in (10, 20, 10, 30):
        call(size)
    assert mix.graphs.size == 2
    assert changes(mix.graphs, lambda: call(40))["evictions"] == 1
    mix.graphs.max = 1
    assert mix.graphs.size == 1
    mix.graphs.max = 0
    assert mix.graphs.size == 0
    changed = changes(mix.graphs, lambda: [call(10), call(10)])
    assert (changed["instantiations"], mix.graphs.size) == (2, 0)
    mix.graphs.max = None
    assert mix.graphs.max is None
    for size in range(50, 90):
        call(size)
    assert mix.graphs.size == 40
    mix.graphs.max = "default"
    assert (mix.graphs.max, mix.graphs.size) == (32, 32)
    mix.graphs.clear()
    assert mix.graphs.size == 0
    assert mix.graphs.statistics()["staged_bytes"] == 0
    call(50)
    assert mix.graphs.size == 1


def test_two_of_three_are_kept(op, numbers):
    mix = op("mix")
    mix.graphs.max = 2

    def call(size):
        f = jax.jit(functools.partial(mix, 2.0))
        arrays = [jax.device_put(numbers(size, start=j)) for j in range(4)]
        # Its results are kept, and lie where they lie in the call that comes.
        kept = [f(*arrays), f(*arrays)]
        jax.block_until_ready(kept)
        del kept

        def again():
            changed = changes(mix.graphs, lambda: check_mix(f, *arrays))
            assert changed["launches"] == 1
            return changed.get("instantiations", 0), changed.get("evictions", 0)

        return again

    # Three call sites, each a program of its own, with one graph each.
    calls = {name: call(size) for name, size in (("A", 100), ("B", 200), ("C", 300))}
    mix.graphs.clear()
    made_and_evicted = [calls[name]() for name in "ABAC"]
    assert made_and_evicted == [(1, 0), (1, 0), (0, 0), (1, 1)]
    assert mix.graphs.size == 2
    # It was B that went, for A was used after it.
    assert calls["A"]() == (0, 0)
    assert calls["C"]() == (0, 0)
    assert calls["B"]() == (1, 1)
    assert calls["C"]() == (0, 0)
    assert calls["A"]() == (1, 1)


@pytest.mark.slow
def test_ever_new_shapes(ops, numbers):
    if device_bytes() is None:
        pytest.skip("nvidia-smi does not tell what this process has of the GPU's memory")
    sites = 10
    both = (ops.mix_warp, ops.mix_staged_ex)
    x = numbers(10_100)

    def chunk(first, count):
        """Programs of ten call sites each, every one of another shape than all before."""
        programs = []
        for size in range(first, first + count * sites, sites):
            mix = both[size // sites % 2]

            def f(x, mix=mix, size=size):
                parts = [x[: size + i] for i in range(sites)]
                return [mix(2.0, part, part, part, part)[2] for part in parts]

            programs.append(jax.jit(f))
            for i, e in enumerate(programs[-1](x)):
                np.testing.assert_array_equal(e, 2 * x[: size + i])
        assert all(mix.graphs.size == 32 for mix in both)
        del programs
        jax.clear_caches()
        gc.collect()
        for mix in both:
            assert mix.graphs.size == 0
            assert mix.graphs.statistics()["staged_bytes"] == 0
        return host_bytes(), device_bytes()

    for mix in both:
        mix.graphs.max = "default"
    launches = sum(mix.graphs.statistics()["launches"] for mix in both)
    used = [chunk(1 + n * 500, 50) for n in range(20)]
    assert sum(mix.graphs.statistics()["launches"] for mix in both) - launches == 10_000
    host, device = zip(*used, strict=True)
    print("host MB", [n >> 20 for n in host], "device MB", [n >> 20 for n in device])
    # The first fill pools, which the driver makes larger by 2 MB at a time. JAX and XLA keep a
    # little of each program themselves.
    assert max(device[10:]) - max(device[:10]) <= 2 << 20
    assert host[-1] - host[9] < 16 << 20


@pytest.mark.unchecked
def test_graphs_are_freed_with_their_program(op, numbers):
    mix = op("mix")
    f = jax.jit(functools.partial(mix, 2.0))
    check_mix(f, *(numbers(77, start=j) for j in range(4)))
    assert mix.graphs.size == 1
    del f
    jax.clear_caches()
    assert mix.graphs.size == 0
    assert mix.graphs.statistics()["staged_bytes"] == 0


def test_clearing_while_a_kernel_runs(op, numbers):
    slow = op("slow")
    x = numbers(1000)
    f = jax.jit(functools.partial(slow, 0, 1_500_000_000))
    jax.block_until_ready(f(x))
    for _ in range(2):
        result = f(x)
        slow.graphs.clear()
        # The test is of something only if the kernel was running.
        assert not result.is_ready()
        np.testing.assert_array_equal(result, x)
    assert slow.graphs.size == 0
