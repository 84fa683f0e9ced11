"""Texts about a target: signature, doc string, table."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from jax_callable._manifest import Param, Target

_ROLES = {"scalar": "static", "input": "input", "in_out": "in-out", "output": "output"}


class _Annotation(str):
    """A type in the words of the manifest, shown by `inspect` without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(target: Target) -> inspect.Signature:
    """The Python signature of a target, options of the call included."""
    parameters = [
        inspect.Parameter(
            param.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=_Annotation(param)
        )
        for param in target.inputs
    ]
    options = {"output_dims": None, "vmap_method": target.vmap_method}
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in options.items()
    ]
    results = ", ".join(map(str, target.results))
    if len(target.results) != 1:
        results = f"({results})"
    return inspect.Signature(parameters, return_annotation=_Annotation(results))


def doc(target: Target) -> str:
    """The doc string of a target: Rust's, then parameters and results."""
    lines = [target.doc.strip() or f"Calls the Rust function {target.path}.", ""]
    if target.inputs:
        lines += ["Args:", *(f"    {param.name}: {_describe(param)}" for param in target.inputs)]
    lines += [
        "    output_dims: Shapes of the outputs in place of their rule: an int or a tuple for all,",
        "        or a dict by output name.",
        f"    vmap_method: What jax.vmap does; {target.vmap_method!r} by default.",
        "",
        "Returns:",
        *(f"    {param.name}: {_describe(param)}" for param in target.results),
    ]
    if target.vjp is not None:
        lines += ["", f"Derivatives are reverse mode, by {'.'.join(target.vjp)}."]
    if target.has_side_effect:
        lines += ["", "A call has side effects: it is never dropped or merged with another."]
    return "\n".join(lines)


def table(title: str, targets: Sequence[Target]) -> str:
    """One line per target, under a title and column heads."""
    names = [target.name for target in targets]
    # The one column without a natural width comes last.
    rows = [("name", "platforms", "vmap", "source", "signature")]
    rows += [
        (
            target.name if names.count(target.name) == 1 else target.path,
            ", ".join(target.platforms),
            target.vmap_method or "none",
            ", ".join(f"{handler.file}:{handler.line}" for handler in target.handlers),
            call(target),
        )
        for target in targets
    ]
    return "\n".join([title, *_align(rows)])


def call(target: Target) -> str:
    """Inputs and results in one line: `(a: float32, y: float32[:] in-out) -> y`."""
    inputs = ", ".join(
        f"{param.name}: {param}{' in-out' if param.role == 'in_out' else ''}"
        for param in target.inputs
    )
    results = ", ".join(
        param.name if param.role == "in_out" else f"{param.name}: {param}"
        for param in target.results
    )
    return f"({inputs}) -> {results}"


def _describe(param: Param) -> str:
    text = f"{param}, {_ROLES[param.role]}"
    if param.packed:
        text += f"; elements of shape {param.packed}"
    return f"{text}."


def _align(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
