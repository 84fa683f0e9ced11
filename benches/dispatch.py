"""What a call costs on the CPU: our handler beside the same one in C++ through ffi.h.

2,000 calls are chained in one jitted function, so that XLA runs them one after the other
without Python between them. An empty handler, timed in the same rounds, is what XLA itself
costs; the difference to it is a handler's own time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jax_callable

CALLS = 2000
ROUNDS = 60
N = 4


def _compile_cpp(directory: str) -> ctypes.CDLL:
    library = Path(directory) / "handlers.so"
    source = Path(__file__).parent / "cpp" / "handlers.cc"
    command = ["g++", "-std=c++17", "-O3", "-fPIC", "-shared"]
    subprocess.run(
        [*command, f"-I{jax.ffi.include_dir()}", str(source), "-o", str(library)], check=True
    )
    return ctypes.CDLL(str(library))


def _chain(call):  # type: ignore[no-untyped-def]
    def run(x: jax.Array, y: jax.Array) -> jax.Array:
        for _ in range(CALLS):
            y = call(x, y)
        return y

    return jax.jit(run)


def run() -> str:
    """Times the three handlers in turn and returns a Markdown table."""
    ops = jax_callable.load(os.environ["JAX_CALLABLE_BENCH_OPS"])
    with tempfile.TemporaryDirectory() as directory:
        cpp = _compile_cpp(directory)
        for name in ("axpby", "empty"):
            jax.ffi.register_ffi_target(
                f"bench_{name}", jax.ffi.pycapsule(getattr(cpp, name)), platform="cpu"
            )
        return _measure(ops)


def _measure(ops: jax_callable.Library) -> str:
    x = jnp.arange(N, dtype=jnp.float32)
    y = jnp.ones(N, jnp.float32)
    shape = jax.ShapeDtypeStruct((N,), jnp.float32)
    a, b = np.float32(0.5), np.float32(0.25)
    variants = {
        "empty handler": _chain(
            lambda x, y: jax.ffi.ffi_call("bench_empty", shape)(x, y, a=a, b=b)
        ),
        "C++ ffi.h": _chain(lambda x, y: jax.ffi.ffi_call("bench_axpby", shape)(x, y, a=a, b=b)),
        "Rust, jax-callable": _chain(lambda x, y: ops.axpby(0.5, 0.25, x, y)),
    }
    results = {name: np.asarray(f(x, y)) for name, f in variants.items()}
    np.testing.assert_allclose(results["Rust, jax-callable"], results["C++ ffi.h"], rtol=1e-6)

    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, function in variants.items():
            start = time.perf_counter()
            function(x, y).block_until_ready()
            times[name].append((time.perf_counter() - start) / CALLS * 1e9)
    least = {name: min(values) for name, values in times.items()}
    floor = least["empty handler"]
    cpp = least["C++ ffi.h"] - floor
    lines = [
        "# Dispatch on the CPU",
        "",
        f"3 arrays of {N} float32, 2 scalars, {CALLS} calls chained in one jit; the least of "
        f"{ROUNDS} rounds in which the three take turns. JAX {jax.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores.",
        "",
        "| handler | ns per call | less the empty one | ratio to C++ |",
        "|---|---|---|---|",
    ]
    for name, time_ns in least.items():
        own = time_ns - floor
        ratio = "" if name == "empty handler" else f"{own / cpp:.2f}"
        lines.append(f"| {name} | {time_ns:.0f} | {own:.0f} | {ratio} |")
    return "\n".join(lines) + "\n"
