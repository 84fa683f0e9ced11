"""The host time inside of handlers, measured for all in the same way.

A library of trampolines stands between XLA and each handler: ours, C++'s and Warp's alike. They are
put there while the handlers are registered, and clock the stages that run with every execution.
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

STAGES = ("initialize", "execute")
CAPACITY = 1 << 14


class HandlerTimes:
    """Registers timers for handlers of a platform."""

    def __init__(self, platform: str, directory: Path, source: Path) -> None:
        library = directory / "timing.so"
        command = ["g++", "-std=c++17", "-O3", "-fPIC", "-shared"]
        include = f"-I{jax.ffi.include_dir()}"
        subprocess.run([*command, include, str(source), "-o", str(library)], check=True)
        self._platform = platform
        self._library = ctypes.CDLL(str(library))
        self._library.take_slot.argtypes = [ctypes.c_void_p]
        self._library.take_slot.restype = ctypes.c_int64
        self._library.timed_handler.argtypes = [ctypes.c_size_t]
        self._library.timed_handler.restype = ctypes.c_void_p
        self._library.take_times.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        self._library.take_times.restype = ctypes.c_size_t
        self._slots: dict[str, dict[str, int]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Clocks the handlers that are registered meanwhile; gives the names of their targets."""
        names: list[str] = []
        register = jax.ffi.register_ffi_target

        def register_timed(name: str, fn: Any, platform: str = "cpu", **kwargs: Any) -> None:
            if platform.lower() == self._platform:
                stages = fn if isinstance(fn, dict) else {"execute": fn}
                names.append(name)
                self._slots[name] = {}
                fn = {stage: self._timed(name, stage, stages[stage]) for stage in stages}
            register(name, fn, platform=platform, **kwargs)

        jax.ffi.register_ffi_target = register_timed
        try:
            yield names
        finally:
            jax.ffi.register_ffi_target = register

    def _timed(self, name: str, stage: str, capsule: Any) -> Any:
        if stage not in STAGES:
            return capsule
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        pointer.restype = ctypes.c_void_p
        slot = self._library.take_slot(pointer(capsule, None))
        assert slot >= 0, "more handlers than slots in timing.cc"
        self._slots[name][stage] = slot
        return jax.ffi.pycapsule(self._library.timed_handler(slot))

    def take(self, name: str) -> dict[str, np.ndarray]:
        """Nanoseconds of each call since the last time, for each stage of a target."""
        taken = {}
        for stage, slot in self._slots[name].items():
            times = np.zeros(CAPACITY, np.uint32)
            calls = self._library.take_times(slot, times.ctypes.data, CAPACITY)
            taken[stage] = times[:calls]
        return taken
