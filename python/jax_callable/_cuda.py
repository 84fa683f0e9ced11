"""What a library with CUDA handlers needs of the Python environment."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin")
"""The distributions that bring CUDA to JAX."""


def plugins() -> dict[str, str]:
    """The installed CUDA plugins of JAX, with their versions."""
    found = {name: version(name) for name in PLUGINS}
    return {name: each for name, each in found.items() if each is not None}


def version(distribution: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def mismatch() -> str | None:
    """What is wrong with the versions of jaxlib, the CUDA plugin and its runtime, if anything.

    JAX takes no plugin of another version than jaxlib's, and tells only of it in passing: calls on
    a GPU then find no function of ours, or there is no GPU.
    """
    jaxlib = version("jaxlib")
    if jaxlib is None:
        return None
    for plugin in plugins():
        for name in (plugin, plugin.replace("plugin", "pjrt")):
            found = version(name)
            if found is None or _release(found) == _release(jaxlib):
                continue
            age = "newer" if _release(found) > _release(jaxlib) else "older"
            extra = plugin.split("-")[1]
            return (
                f"{name} {found} is {age} than jaxlib {jaxlib}, and JAX uses it only if both are "
                "of one version: functions for CUDA will not be found. Install one version of "
                f"all: pip install -U 'jax[{extra}]'"
            )
    return None


def _release(text: str) -> tuple[int, ...]:
    """The numbers that JAX compares: of `0.12.0.dev3+cuda` the first three."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


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
