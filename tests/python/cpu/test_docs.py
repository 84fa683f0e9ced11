"""The programs of docs run, and print what is shown."""

import itertools
import os

from documents import blocks, check_programs


def test_programs_of_the_page_about_jax():
    programs = [
        (program, shown)
        for (before, program), (after, shown) in itertools.pairwise(blocks("docs/jax.md"))
        if (before, after) == ("python", "text")
    ]
    assert len(programs) == 3
    check_programs(programs, os.environ["JAX_CALLABLE_QUICKSTART"])
