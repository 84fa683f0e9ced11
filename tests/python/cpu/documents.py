"""The pages under docs, and README.md: their fenced blocks."""

import contextlib
import io
import pathlib
import re

import jax

ROOT = pathlib.Path(__file__).parents[3]


def read(name):
    """The text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name):
    """The language and the text of each fenced block of a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", read(name), re.MULTILINE | re.DOTALL)


def check_programs(pairs, library):
    """Runs programs one after another, with one set of names, and compares what they print.

    Args:
        pairs: Each program with its output. Only the first loads the quickstart's library.
        library: Where that is.
    """
    path = '"target/release/libquickstart.so"'
    names, before = {}, jax.config.jax_enable_x64
    try:
        for i, (program, shown) in enumerate(pairs):
            assert program.count(path) == (1 if i == 0 else 0)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(program.replace(path, repr(library)), names)
            assert printed.getvalue() == shown
    finally:
        jax.config.update("jax_enable_x64", before)
