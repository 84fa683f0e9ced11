"""The programs of docs run, and print what is shown."""

import contextlib
import io
import itertools
import os

import jax
from documents import blocks


def test_programs_of_the_page_about_jax():
    programs = [
        (program, shown)
        for (before, program), (after, shown) in itertools.pairwise(blocks("docs/jax.md"))
        if (before, after) == ("python", "text")
    ]
    assert len(programs) == 3
    path, library = '"target/release/libquickstart.so"', os.environ["JAX_CALLABLE_QUICKSTART"]
    assert programs[0][0].count(path) == 1
    names, before = {}, jax.config.jax_enable_x64
    try:
        for program, shown in programs:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(program.replace(path, repr(library)), names)
            assert printed.getvalue() == shown
    finally:
        jax.config.update("jax_enable_x64", before)
