"""Help for `jax.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax_callable._library import Library

if TYPE_CHECKING:
    from jax.export import DisabledSafetyCheck

    from jax_callable._callable import Callable


def disabled_checks(*exported: Library | Callable) -> list[DisabledSafetyCheck]:
    """The safety checks that `jax.export.export` must leave out for these callables.

    JAX serialises custom calls only of targets that it is told are stable. The names of ours are:
    they contain a hash of everything that tracing depends on. The process that runs the exported
    program must load the same library first, or a rebuilt one with the same parameters and options.

    Args:
        *exported: Libraries, or single callables.

    Returns:
        A value for the argument `disabled_checks`.
    """
    from jax.export import DisabledSafetyCheck  # noqa: PLC0415 - the package must import without JAX

    callables = [
        callable
        for item in exported
        for callable in (item if isinstance(item, Library) else (item,))
    ]
    return [DisabledSafetyCheck.custom_call(callable.target.target) for callable in callables]
