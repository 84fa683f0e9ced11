"""The `stubs` command: the types of a library, for mypy, pyright and editors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jax_callable import _text
from jax_callable._manifest import Manifest, Param, Target

_SCALARS = {"b": "Bool", "i": "Integer", "u": "Integer", "f": "Float", "c": "Complex"}
_SEQUENCES = {"b": "Bools", "i": "Integers", "u": "Integers", "f": "Floats", "c": "Complexes"}
# Of a callable, beside those with underscores.
_ATTRIBUTES = ("graphs", "signature", "target")


def render(manifest: Manifest, file: str) -> str:
    """The text of a stub, in which the library is a module.

    Functions are at the top and in a class for each crate, as in the loaded library: a name that
    two crates have is in their classes only.

    Args:
        manifest: What the library says about itself.
        file: The name of the library's file.
    """
    return "\n".join(_Stub(manifest.targets).lines(file)) + "\n"


class _Stub:
    """The lines of a stub."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets
        self._crates: dict[str, list[Target]] = {}
        for target in targets:
            self._crates.setdefault(target.crate, []).append(target)
        names = {*self._crates, *(target.name for target in targets)}
        # The names that annotations rely on.
        self._types = "_t"
        while self._types in names:
            self._types += "_"
        self._tuple = f"{self._types}.builtins.tuple" if "tuple" in names else "tuple"

    def lines(self, file: str) -> Iterator[str]:
        yield _literal(f"The Rust functions of {file}, for type checkers. Made by jax-callable.")
        yield ""
        yield f"import jax_callable.typing as {self._types}"
        for target in self._targets:
            if self._is_at_the_top(target):
                yield ""
                yield from self._function(target)
        for crate, targets in self._crates.items():
            yield ""
            yield from self._crate(crate, targets)

    def _is_at_the_top(self, target: Target) -> bool:
        return target.name not in self._crates and len(self._named(target.name)) == 1

    def _named(self, name: str) -> list[Target]:
        return [target for target in self._targets if target.name == name]

    def _crate(self, crate: str, targets: Sequence[Target]) -> Iterator[str]:
        """The crate as a class; as a function too, where one has its name."""
        named_like_it = self._named(crate)
        if len(named_like_it) != 1:
            yield f"class {crate}:"
            yield from _indented(self._members(targets))
            return
        (target,) = named_like_it
        owner = f"{self._types}.Function[..., {self._results(target)}]"
        yield f"class _{crate}({owner}):"
        yield from _indented(self._signature(target, "__call__", "self", "/"))
        # What every callable has comes first when a program runs, too.
        others = [each for each in targets if each.name not in _ATTRIBUTES]
        yield from _indented(self._members(others))
        yield ""
        yield f"{crate}: _{crate}"

    def _members(self, targets: Sequence[Target]) -> Iterator[str]:
        for target in targets:
            if self._is_at_the_top(target):
                yield f"{target.name} = {target.name}"
            else:
                yield "@staticmethod"
                yield from self._function(target)

    def _function(self, target: Target) -> Iterator[str]:
        yield f"@{self._types}.Function"
        yield from self._signature(target, target.name)

    def _signature(self, target: Target, name: str, *first: str) -> Iterator[str]:
        # Any call is one of the base class, which mypy would want of this one too.
        yield f"def {name}({'  # type: ignore[override]' if first else ''}"
        yield from (f"    {each}," for each in first)
        yield from (f"    {each.name}: {self._input(each)}," for each in target.inputs)
        yield "    *,"
        output_dims = f"{self._types}.OutputDims" if target.outputs else "None"
        yield f"    output_dims: {output_dims} = None,"
        method = "None" if target.vmap_method is None else f'"{target.vmap_method}"'
        yield f"    vmap_method: {self._types}.VmapMethod = {method},"
        yield f") -> {self._results(target)}:"
        yield from _indented(_literal(_text.doc(target)).split("\n"))

    def _input(self, param: Param) -> str:
        if param.dtype == "str":
            return "str"
        if param.is_array:
            name = "ArrayInput"
        elif param.length is not None and param.dtype == "uint8":
            name = "Bytes"
        else:
            kind = param.dtype.removeprefix("b")[0] if param.dtype != "bool" else "b"
            name = (_SCALARS if param.length is None else _SEQUENCES)[kind]
        return f"{self._types}.{name}"

    def _results(self, target: Target) -> str:
        arrays = [f"{self._types}.Array"] * len(target.results)
        return arrays[0] if len(arrays) == 1 else f"{self._tuple}[{', '.join(arrays)}]"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" if line else "" for line in lines)


def _literal(text: str) -> str:
    """A doc string, escaped where it must be."""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = re.sub(r'"$', r"\\\g<0>", text)
    text = re.sub(r"[^\n\t -~\xa0-\U0010ffff]", lambda found: f"\\x{ord(found[0]):02x}", text)
    return f'"""{text}"""'
