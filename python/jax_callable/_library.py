"""A loaded library as a Python object."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jax_callable import _text
from jax_callable._manifest import Target
from jax_callable._open import OpenLibrary

if TYPE_CHECKING:
    from jax_callable._callable import Callable


class Crate:
    """The targets of one crate of a library, as attributes."""

    def __init__(self, name: str, callables: Sequence[Callable]) -> None:
        """Collects what `Library` found in one crate."""
        self._name = name
        self._callables = {callable.target.name: callable for callable in callables}

    def __getattr__(self, name: str) -> Callable:
        if name in self.__dict__.get("_callables", ()):
            return self._callables[name]
        raise AttributeError(_unknown(f"crate {self.__dict__.get('_name')}", name, dir(self)))

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__.get("_callables", ()))

    def __str__(self) -> str:
        targets = [callable.target for callable in self._callables.values()]
        return _text.table(f"{self._name}: {_count(targets)}", targets)

    def __repr__(self) -> str:
        return f"<jax_callable crate {self._name}: {', '.join(dir(self))}>"


class Library:
    """A loaded library. Its targets are attributes: `ops.saxpy`, or `ops.crate_name.saxpy`.

    Printing it shows a table of its targets; `ops["crate_name.saxpy"]` finds one by its full name.
    """

    def __init__(self, opened: OpenLibrary, callables: Sequence[Callable]) -> None:
        """Presents an opened library whose targets are registered; `load` makes it."""
        self._opened = opened
        self._callables = tuple(callables)
        crates = dict.fromkeys(callable.target.crate for callable in callables)
        self._crates = {
            name: Crate(name, [each for each in callables if each.target.crate == name])
            for name in crates
        }
        for callable in callables:
            callable._crate = self._crates.get(callable.target.name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._named(name)
        if len(found) == 1:
            return found[0]
        if name in self._crates:
            return self._crates[name]
        if found:
            paths = " or ".join(f"ops.{callable.target.path}" for callable in found)
            raise AttributeError(
                f"{self._opened.path.name}: {name!r} is in {len(found)} crates; write {paths}"
            )
        raise AttributeError(_unknown(self._opened.path.name, name, dir(self)))

    def __getitem__(self, path: str) -> Callable:
        for callable in self._callables:
            if callable.target.path == path:
                return callable
        known = [callable.target.path for callable in self._callables]
        raise KeyError(_unknown(self._opened.path.name, path, known))

    def __iter__(self) -> Iterator[Callable]:
        return iter(self._callables)

    def __len__(self) -> int:
        return len(self._callables)

    def __dir__(self) -> list[str]:
        names = {callable.target.name for callable in self._callables}
        return sorted({name for name in names if len(self._named(name)) == 1} | self._crates.keys())

    def _named(self, name: str) -> list[Callable]:
        return [callable for callable in self._callables if callable.target.name == name]

    def __str__(self) -> str:
        return describe(self._opened)

    def __repr__(self) -> str:
        return f"<jax_callable library {str(self._opened.path)!r}: {_count(self._callables)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from jax_callable._load import load  # noqa: PLC0415 - that module imports this one

        return load, (str(self._opened.path),)


def targets(library: Library) -> list[Target]:
    """The descriptions of a library's targets, in the library's order.

    Args:
        library: What `load` returned.
    """
    return [callable.target for callable in library]


def live_call_sites(library: Library) -> int:
    """How many call sites of compiled programs hold state in the library now.

    A call site is one call in one compiled program; it lives as long as the program.

    Args:
        library: What `load` returned.
    """
    return library._opened.live_call_sites()


def describe(opened: OpenLibrary) -> str:
    """A library's table of targets, under its path and version."""
    found = opened.manifest.targets
    title = f"{opened.path} (jax-callable {opened.manifest.version}): {_count(found)}"
    return _text.table(title, found)


def _count(items: Sequence[Any]) -> str:
    return "1 target" if len(items) == 1 else f"{len(items)} targets"


def _unknown(where: str, name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
    return f"{where}: no target {name!r}; {hint}"
