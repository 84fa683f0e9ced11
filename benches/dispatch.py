"""What a call costs on the CPU: our handler beside the same one in C++ through ffi.h.

2,000 calls are chained in one jitted function, so that XLA runs them one after the other
without Python between them: once as 2,000 call sites, where much of the time is the memory of
XLA's own that each call brings into the cache, and once as a loop over 10 call sites, where it
stays there. An empty handler, timed in the same rounds, is what XLA itself costs; the difference
to it is a handler's own time.

Where the executables lie in memory changes the times of one compilation by more than the
handlers differ. So everything is compiled several times over, and the medians count.
"""

from __future__ import annotations

import ctypes
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jax_callable

CALLS = 2000
SITES = (10, 2000)
COMPILATIONS = 7
ROUNDS = 25
N = 4

Call = Callable[[jax.Array, jax.Array], Any]


def _compile_cpp(directory: str) -> ctypes.CDLL:
    library = Path(directory) / "handlers.so"
    source = Path(__file__).parent / "cpp" / "handlers.cc"
    command = ["g++", "-std=c++17", "-O3", "-fPIC", "-shared"]
    subprocess.run(
        [*command, f"-I{jax.ffi.include_dir()}", str(source), "-o", str(library)], check=True
    )
    return ctypes.CDLL(str(library))


def _chain(call: Call, sites: int) -> Call:
    def chain(x: jax.Array, y: jax.Array) -> jax.Array:
        for _ in range(sites):
            y = call(x, y)
        return y

    if sites == CALLS:
        return jax.jit(chain)
    loop = CALLS // sites
    return jax.jit(lambda x, y: jax.lax.fori_loop(0, loop, lambda _, y: chain(x, y), y))


def run() -> str:
    """Times the three handlers in turn and returns a Markdown table."""
    ops = jax_callable.load(os.environ["JAX_CALLABLE_BENCH_OPS"])
    with tempfile.TemporaryDirectory() as directory:
        cpp = _compile_cpp(directory)
        for name in ("axpby", "empty"):
            jax.ffi.register_ffi_target(
                f"bench_{name}", jax.ffi.pycapsule(getattr(cpp, name)), platform="cpu"
            )
        return _table(ops)


def _table(ops: jax_callable.Library) -> str:
    shape = jax.ShapeDtypeStruct((N,), jnp.float32)
    scalars = {"a": np.float32(0.5), "b": np.float32(0.25)}
    calls: dict[str, Call] = {
        "empty handler": lambda x, y: jax.ffi.ffi_call("bench_empty", shape)(x, y, **scalars),
        "C++ ffi.h": lambda x, y: jax.ffi.ffi_call("bench_axpby", shape)(x, y, **scalars),
        "Rust, jax-callable": lambda x, y: ops.axpby(0.5, 0.25, x, y),
    }
    lines = [
        "# Dispatch on the CPU",
        "",
        f"3 arrays of {N} float32 and 2 scalars; {CALLS} calls chained in one jit. Medians of "
        f"{COMPILATIONS} compilations, of each the least of {ROUNDS} rounds in which the handlers "
        f"take turns. JAX {jax.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores.",
        "",
        "| call sites | handler | ns per call | less the empty one | ratio to C++ |",
        "|---|---|---|---|---|",
    ]
    for sites in SITES:
        samples = [_measure(calls, sites) for _ in range(COMPILATIONS)]
        own = {
            name: statistics.median(sample[name] - sample["empty handler"] for sample in samples)
            for name in calls
        }
        for name in calls:
            total = statistics.median(sample[name] for sample in samples)
            ratio = f"{own[name] / own['C++ ffi.h']:.2f}" if own[name] else ""
            lines.append(f"| {sites} | {name} | {total:.0f} | {own[name]:.0f} | {ratio} |")
    return "\n".join(lines) + "\n"


def _measure(calls: dict[str, Call], sites: int) -> dict[str, float]:
    """Compiles all and times them in turn; ns per call."""
    x = jnp.arange(N, dtype=jnp.float32)
    y = jnp.ones(N, jnp.float32)
    chains = {name: _chain(call, sites) for name, call in calls.items()}
    results = {name: np.asarray(chain(x, y)) for name, chain in chains.items()}
    np.testing.assert_allclose(results["Rust, jax-callable"], results["C++ ffi.h"], rtol=1e-6)
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, chain in chains.items():
            start = time.perf_counter()
            chain(x, y).block_until_ready()
            least[name] = min(least[name], (time.perf_counter() - start) / CALLS * 1e9)
    return least
