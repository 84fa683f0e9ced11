"""The command line: `python -m jax_callable`, or `jax-callable`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from jax_callable import _doctor, _stubs
from jax_callable._library import describe
from jax_callable._open import open_library
from jax_callable._version import __version__
from jax_callable.errors import LoadError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        The exit code: 0 if all is well, 1 if something is wrong. Wrong usage exits with 2.
    """
    options = _parser().parse_args(argv)
    try:
        if options.command == "doctor":
            return _doctor.run(options.library)
        if options.command == "stubs":
            return _write_stubs(options.library, options.output)
        return _list(options.library, as_json=options.json)
    except LoadError as error:
        print(f"jax-callable: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader, such as head, has enough. Keep Python from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _list(library: str, *, as_json: bool) -> int:
    opened = open_library(library)
    if as_json:
        print(json.dumps({"path": str(opened.path), **opened.manifest.raw}, indent=2))
    else:
        print(describe(opened))
    sys.stdout.flush()
    return 0


def _write_stubs(library: str, output: Path | None) -> int:
    opened = open_library(library)
    text = _stubs.render(opened.manifest, opened.path.name)
    if output is None:
        print(text, end="", flush=True)
        return 0
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"jax-callable: cannot write {output}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jax-callable",
        description="Rust functions for JAX: what a library holds, what is wrong.",
    )
    parser.add_argument("--version", action="version", version=f"jax-callable {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    library = "path of a library, or name of an installed package that holds one"

    listing = commands.add_parser("list", help="show the targets of a library; needs no JAX")
    listing.add_argument("library", metavar="LIB", help=library)
    listing.add_argument("--json", action="store_true", help="print the manifest as JSON")

    stubs = commands.add_parser("stubs", help="write the types of a library; needs no JAX")
    stubs.add_argument("library", metavar="LIB", help=library)
    stubs.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="the .pyi to write; else it is printed"
    )

    doctor = commands.add_parser("doctor", help="show versions and platforms, and what to mend")
    doctor.add_argument("library", metavar="LIB", nargs="?", help=library)
    return parser


if __name__ == "__main__":
    sys.exit(main())
