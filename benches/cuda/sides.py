"""Who takes part: the same work through jax-callable, through C++ and through NVIDIA Warp."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from handler_times import HandlerTimes

import jax_callable

# Our graph modes, and their names in the library and at Warp.
MODES = {
    "None": ("scale_none", "NONE"),
    "Jax": ("scale_jax", "JAX"),
    "Warp": ("scale_warp", "WARP"),
    "WarpStaged": ("scale_warp_staged", "WARP_STAGED"),
    "WarpStagedEx": ("scale_warp_staged_ex", "WARP_STAGED_EX"),
}
CPP_MODES = ("None", "Jax", "Graph", "ForkedGraph")
NAMES = [
    *(f"Rust {mode}" for mode in MODES),
    *(f"C++ {mode}" for mode in CPP_MODES),
    *(f"Warp {mode}" for mode in MODES),
]
SCALE = 2.0

Call = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Side:
    """One of those who are compared: who, in which graph mode, and its target."""

    who: str
    mode: str
    call: Call
    target: str

    @property
    def name(self) -> str:
        return f"{self.who} {self.mode}"

    @property
    def is_by_hand(self) -> bool:
        """Whether the driver's calls of a graph are timed in it."""
        return self.mode == "Graph"


@dataclasses.dataclass(frozen=True)
class Absent:
    """A side that cannot take part, and why."""

    why: str
    failed: bool = False


class Sides:
    """Loads and compiles what the sides need, once."""

    def __init__(self, library: str, sources: Path, work: Path, times: HandlerTimes) -> None:
        self._times = times
        self._sources = sources
        with times.watching() as names:
            self.ops = jax_callable.load(library)
        self._targets = {name.split(".")[1]: name for name in names}
        self._cpp = self._compile_cpp(work)

    def _compile_cpp(self, work: Path) -> dict[str, str] | str:
        """The targets in C++ by mode, or why there are none."""
        nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if not nvcc:
            return "no nvcc"
        library = work / "handlers.so"
        kernels = next(self._sources.glob("**/kernels.cu")).parent
        command = [
            nvcc,
            "-std=c++17",
            "-O3",
            "-arch=native",
            "-shared",
            "-Xcompiler",
            "-fPIC",
            "-w",
        ]
        command += [f"-I{jax.ffi.include_dir()}", f"-I{kernels}", "-o", str(library)]
        done = subprocess.run(
            [*command, str(self._sources / "cpp" / "handlers.cu")], capture_output=True, text=True
        )
        if done.returncode != 0:
            return f"nvcc failed: {done.stderr[-2000:]}"
        handlers = ctypes.CDLL(str(library))
        self._handlers = handlers
        targets = {}
        with self._times.watching():
            for mode in CPP_MODES:
                targets[mode] = f"bench_cpp_{mode}"
                handler = jax.ffi.pycapsule(getattr(handlers, f"scale_{mode.lower()}"))
                jax.ffi.register_ffi_target(targets[mode], handler, platform="CUDA")
        return targets

    def take_graph_times(self) -> list[float]:
        """Microseconds of the driver's part of C++'s calls in mode Graph, since the last time."""
        times = (ctypes.c_double * 1024)()
        calls = self._handlers.take_graph_times(times, len(times))
        return [time / 1e3 for time in times[:calls]]

    def all(self, reps: int) -> Iterator[Side | Absent]:
        """Each side with the work `reps` times, or why it is not there."""
        for mode, (function, _) in MODES.items():
            yield self._ours(mode, function, reps)
        if isinstance(self._cpp, str):
            yield Absent(f"C++: {self._cpp}")
        else:
            for mode, target in self._cpp.items():
                yield Side("C++", mode, _cpp_call(target, reps), target)
        yield from self._warp(reps)

    def _ours(self, mode: str, function: str, reps: int) -> Side:
        op = self.ops[f"bench_ops_cuda.{function}"]

        def call(a: Any, b: Any, c: Any, d: Any) -> Any:
            return op(SCALE, reps, a, b, c, d)

        return Side("Rust", mode, call, self._targets[function])

    def _warp(self, reps: int) -> Iterator[Side | Absent]:
        try:
            import warp_side
        except ImportError as error:
            yield Absent(f"Warp: {error}")
            return
        modes = {theirs: ours for ours, (_, theirs) in MODES.items()}
        calls = warp_side.calls(SCALE, reps)
        while True:
            with self._times.watching() as names:
                mode, call = next(calls, (None, None))
            if mode is None:
                return
            yield Side("Warp", modes[mode], call, names[-1])


def _cpp_call(target: str, reps: int) -> Call:
    def call(a: Any, b: Any, c: Any, d: Any) -> Any:
        shapes = [jax.ShapeDtypeStruct(x.shape, jnp.float32) for x in (c, d, a, b)]
        bound = jax.ffi.ffi_call(target, shapes, input_output_aliases={2: 0, 3: 1})
        return bound(a, b, c, d, s=np.float32(SCALE), reps=np.int64(reps))

    return call
