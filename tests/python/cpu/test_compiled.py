"""Compiled programs: ahead of time, taken to another process, kept, and given up."""

import functools
import gc
import pickle
import time
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable

import jax_callable

x = np.arange(4, dtype=np.float32)


def test_a_program_with_static_arguments(ops):
    static = {"zeta", "alpha", "mode", "flag", "weights", "beta"}
    lowered = jax.jit(ops.many, static_argnames=static).lower(
        1.5, -2, jax.ShapeDtypeStruct((3,), np.float32), "Mode!", True, (0.5, 0.25), b"\x08\x09"
    )
    compiled = lowered.compile()
    expected = [1.5, -2, 6, 5, 1, 0.75, 8, 9]
    assert np.asarray(compiled(np.array([1, 2, 3], np.float32))).tolist() == expected


def test_a_kept_program_goes_on_after_its_caches(ops):
    compiled = jax.jit(functools.partial(ops.saxpy, 3.0)).lower(x, x).compile()
    jax.clear_caches()
    gc.collect()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x, x), 4 * x)


def test_what_it_cannot_be_called_with(ops):
    compiled = jax.jit(ops.softmax).lower(x).compile()
    for wrong in (np.ones(5, np.float32), np.ones(4, np.int32), np.ones((4, 1), np.float32)):
        with pytest.raises((TypeError, ValueError)):
            compiled(wrong)


RUN_EXECUTABLE = """if True:
    import pickle, sys
    import jax, jax_callable, numpy as np
    from jax.experimental import serialize_executable
    ops = jax_callable.load(sys.argv[1])
    # Calls that have nothing to do with it.
    np.asarray(ops.saxpy(100.0, np.ones(2, np.float32), np.ones(2, np.float32)))
    with open(sys.argv[2], "rb") as file:
        compiled = serialize_executable.deserialize_and_load(*pickle.load(file))
    for step in range(2):
        y, total, text, (powers, uses) = compiled(np.arange(4, dtype=np.float32) + step)
        print(np.asarray(y).tolist(), np.asarray(total).tolist(), bytes(np.asarray(text)).decode())
        # Its state is built there, and is that of the program.
        print(np.asarray(powers).tolist(), int(uses))
"""


def test_an_executable_in_another_process(ops, library, python, tmp_path):
    def program(x):
        rows = jax.vmap(ops.cumsum)(x.reshape(2, 2))
        sums, powers = ops.row_sums(rows, jnp.zeros(2)), ops.powers(3.0, 2, np.uint32([1, 0]))
        return ops.saxpy(-0.5, x, x), sums, ops.echo_text("état", 5), powers

    compiled = jax.jit(program).lower(x).compile()
    file = tmp_path / "executable"
    file.write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    # JAX loads an executable for all devices of a process: one, as where it was compiled.
    assert python(RUN_EXECUTABLE, library, file, XLA_FLAGS="").splitlines() == [
        "[0.0, 0.5, 1.0, 1.5] [1.0, 7.0] état",
        "[3.0, 1.0] 0",
        "[0.5, 1.0, 1.5, 2.0] [4.0, 10.0] état",
        "[3.0, 1.0] 1",
    ]


COUNT_HITS = """if True:
    import sys
    import jax, jax.monitoring, jax_callable, numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P
    jax.config.update("jax_compilation_cache_dir", sys.argv[2])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    counts = {"cache_hits": 0, "cache_misses": 0}

    def listen(event, **_):
        name = event.rpartition("/")[2]
        if name in counts:
            counts[name] += 1

    jax.monitoring.register_event_listener(listen)
    ops = jax_callable.load(sys.argv[1])
    x = np.arange(3, dtype=np.float32)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    rows = jax.device_put(rows, NamedSharding(mesh, P("i")))
    mapped = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
    calls = {
        "a": lambda: ops.saxpy(float("nan"), x, x),
        "b": lambda: ops.saxpy(-0.0, x, x),
        "c": lambda: ops.saxpy(0.0, x, x),
        "d": lambda: jax.vmap(ops.softmax)(x[None]),
        "e": lambda: ops.iota(output_dims=3),
        "f": lambda: jax.jit(lambda x: ops.cumsum(ops.count_effectful(x)))(x),
        "g": lambda: jax.jit(jax.vmap(lambda x: ops.softmax(x, vmap_method="sequential")))(x[None]),
        # Over four devices: cut by a promise, cut as a batch, by hand, and gathered.
        "h": lambda: jax.jit(ops.sorted_medians)(rows),
        "i": lambda: jax.jit(jax.vmap(jax.grad(lambda x: ops.smooth(x)[0])))(rows),
        "j": lambda: jax.jit(jax.shard_map(ops.normalise, **mapped))(rows),
        "k": lambda: jax.jit(ops.row_medians)(rows),
        "l": lambda: jax.pmap(jax.vmap(ops.softmax))(rows.reshape(4, 2, 3)),
    }
    for name in sys.argv[3]:
        print(name, np.asarray(calls[name]()).tolist())
    print(counts["cache_hits"], counts["cache_misses"])
"""


def test_programs_on_disk_are_found_in_any_order(library, python, tmp_path):
    def run(order):
        *results, counts = python(COUNT_HITS, library, tmp_path, order).splitlines()
        return dict(line.split(" ", 1) for line in results), *map(int, counts.split())

    expected, hits, misses = run("abcdefghijkl")
    assert hits == 0
    assert misses >= 12
    assert expected["a"] == "[nan, nan, nan]"
    assert expected["h"] == str(np.arange(1.0, 24, 3).tolist()) == expected["k"]
    for order in ("lkjihgfedcba", "cafejihl", "bdk"):
        results, hits, misses = run(order)
        assert results == {name: expected[name] for name in order}
        assert hits >= len(order)
        assert misses == 0


def settle(ops, limit=0, seconds=10):
    """Gives up what JAX keeps, and returns how many call sites are left when that is done."""
    deadline = time.monotonic() + seconds
    while True:
        jax.clear_caches()
        gc.collect()
        live = jax_callable.live_call_sites(ops)
        if live <= limit or time.monotonic() > deadline:
            return live
        time.sleep(0.05)  # XLA frees some programs on threads of its own.


def test_a_thousand_call_sites_are_given_up(ops):
    before = settle(ops)

    def program(x):
        return [ops.saxpy(float(i), x, x) for i in range(1000)]

    compiled = jax.jit(program).lower(x).compile()
    assert jax_callable.live_call_sites(ops) == before + 1000
    np.testing.assert_array_equal(compiled(x)[999], 1000 * x)
    del compiled, program
    assert settle(ops, before) == before


def test_a_thousand_traces_leave_nothing(ops):
    before = settle(ops)
    kept = []

    def traced(i):
        def function(x):
            return ops.saxpy(float(i), jax.vmap(ops.cumsum)(x[None])[0], x)

        kept.append(weakref.ref(function))
        return function

    for i in range(1000):
        function = jax.jit(traced(i))
        if i % 50:
            function.trace(x)
        else:
            np.testing.assert_array_equal(function(x), i * np.cumsum(x) + x)
            assert jax_callable.live_call_sites(ops) >= before + 2
    del function
    assert settle(ops, before) == before
    assert not any(reference() for reference in kept)


def test_eager_programs_are_given_up(ops):
    before = settle(ops)
    for i in range(40):
        ops.saxpy(i + 0.25, x, x)
        jax.vmap(functools.partial(ops.saxpy, i + 0.25, vmap_method="sequential"))(x[None], x[None])
    assert jax_callable.live_call_sites(ops) == before + 80
    assert settle(ops, before) == before


def test_a_process_with_nothing_left(library, python):
    code = """if True:
        import functools, gc, sys, time
        import jax, jax_callable, numpy as np
        ops = jax_callable.load(sys.argv[1])
        x = np.arange(4, dtype=np.float32)
        for i in range(1000):
            traced = jax.jit(functools.partial(ops.saxpy, float(i))).trace(x, x)
            if i % 20 == 0:
                traced.lower().compile()(x, x)
                jax.grad(lambda x: ops.axpy(float(i), x, x).sum())(x)
                jax.vmap(functools.partial(ops.powers, 2.0, i % 3 + 2))(np.zeros((2, 1), np.uint32))
        print(jax_callable.live_call_sites(ops) > 0)
        del traced
        deadline = time.monotonic() + 20
        while jax_callable.live_call_sites(ops) > 0 and time.monotonic() < deadline:
            jax.clear_caches()
            gc.collect()
            time.sleep(0.05)
        print(jax_callable.live_call_sites(ops), np.asarray(ops.state_counts()).tolist())
    """
    assert python(code, library).split(maxsplit=2) == ["True", "0", "[3, 3]\n"]
