"""What a library with CUDA handlers needs of the Python environment."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path

PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin")
"""The distributions that bring CUDA to JAX."""


def plugins() -> dict[str, str]:
    """The installed CUDA plugins of JAX, with their versions."""
    found = {}
    for name in PLUGINS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def open_library(name: str) -> tuple[str, ...]:
    """Opens a library of CUDA from the packages that JAX uses, if they are installed.

    Those packages are not where the dynamic linker looks. Once it is open, a library that asks for
    it by name gets this one. Nothing of CUDA is called, and no device is touched.

    Args:
        name: The library without `lib`: "nvrtc", "cublas".

    Returns:
        The paths that were opened.
    """
    if not plugins():
        return ()
    opened = []
    for path in _files(name):
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue  # The handler that needs it says so.
        opened.append(str(path))
    return tuple(opened)


def _files(name: str) -> Iterator[Path]:
    """Finds `nvidia/cuda_nvrtc/lib/libnvrtc.so.12`, and `nvidia/cu13/lib/libnvrtc.so.13`."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(folder).glob(f"*/lib/lib{name}.so.[0-9]*"))
