"""Loading CUDA modules while a program is traced, so that its first run does not wait for them."""

from __future__ import annotations

import logging

from jax_callable._manifest import Target
from jax_callable._open import OpenLibrary

_log = logging.getLogger(__name__)


class Preload:
    """Loads what a target needs on the GPUs where it will run, once on each."""

    def __init__(
        self, opened: OpenLibrary, target: Target, index: int, *, everywhere: bool
    ) -> None:
        """For a handler of a library; `of` makes it."""
        self._opened = opened
        self._path = target.path
        self._index = index
        self._everywhere = everywhere
        self._done: set[int] = set()

    def __call__(self) -> None:
        """Does it for a call that is being made; nothing if that is not traced, or not for a GPU.

        A failure is left to the program's first run, which tries again and raises it: nobody should
        need a GPU that works, or its compiler, to look at a program.
        """
        from jax_callable._primitive import traced_cuda_devices  # noqa: PLC0415 - needs JAX

        for ordinal in traced_cuda_devices(everywhere=self._everywhere):
            if ordinal in self._done:
                continue
            self._done.add(ordinal)
            problem = self._opened.preload(self._index, ordinal)
            if problem:
                _log.debug("%s: not preloaded on device %d: %s", self._path, ordinal, problem)


def of(opened: OpenLibrary, target: Target) -> Preload | None:
    """What a target's attribute `preload` asks for; None if that is nothing."""
    for handler in target.handlers:
        asked = handler.options.get("preload")
        if handler.platform == "CUDA" and asked in ("CurrentDevice", "AllDevices"):
            return Preload(opened, target, handler.index, everywhere=asked == "AllDevices")
    return None
