"""Random `jax.vmap`s against loops over unbatched calls.

The cases are the same in each run. `HYPOTHESIS_PROFILE=explore` tries others, and more of them.
"""

import functools
import os
import string

import jax
import numpy as np
import pytest
from batching import METHODS, check, loop
from hypothesis import given, settings
from hypothesis import strategies as st

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=20)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Each operand as in #[dims], with packed dimensions behind; `i:` is in front of entries of a table
# of `t` numbers.
FUNCTIONS = {
    # Each number needs its neighbours, or all.
    "stencil": ["n"],
    "cumsum": ["n"],
    "softmax": ["n"],
    "total": ["nm"],
    "matmul": ["nk", "km"],
    "lookup": ["t", "i:n"],
    "row_sums": ["nm", "n"],
    # With `batch_dims`.
    "dense": ["nk", "mk", "m"],
    "normalise": ["nm"],
    "gather": ["t", "i:n"],
    "scaled_sum": ["n", "n"],
    "scale_rows": ["", "n", "nm"],
    "turn": ["n22", "n2"],
    "sorted_medians": ["nm"],
    "apart": ["n", "m"],
}
SCALARS = {"scaled_sum": [0.5]}


@st.composite
def cases(draw, name):
    """Arguments of one function in one to three `jax.vmap`s."""
    sizes = {letter: draw(st.integers(1, 3), label=letter) for letter in string.ascii_lowercase}
    operands = FUNCTIONS[name]
    shapes = []
    for operand in operands:
        dims = operand.removeprefix("i:")
        shapes.append([int(d) if d.isdigit() else sizes[d] for d in dims])
    levels = []
    for _ in range(draw(st.integers(1, 3), label="levels")):
        batched = draw(
            st.lists(st.booleans(), min_size=len(shapes), max_size=len(shapes)).filter(any)
        )
        size = draw(st.integers(1, 3), label="batch")
        axes = [
            draw(st.integers(0, len(shape))) if is_in else None
            for shape, is_in in zip(shapes, batched, strict=True)
        ]
        for shape, axis in zip(shapes, axes, strict=True):
            if axis is not None:
                shape.insert(axis, size)
        out_axis = draw(st.integers(0, len(levels) + (name != "total")), label="out_axes")
        levels.append((tuple(axes), out_axis))
    rng = np.random.default_rng(draw(st.integers(0, 99), label="seed"))
    args = [
        rng.integers(0, sizes["t"], shape).astype(np.int32)
        if operand.startswith("i:")
        else rng.integers(-9, 9, shape).astype(np.float32)
        for operand, shape in zip(operands, shapes, strict=True)
    ]
    return levels, args


def in_levels(transform, function, levels):
    return functools.reduce(lambda f, level: transform(f, *level), levels, function)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_loops(ops, name):
    function = functools.partial(getattr(ops, name), *SCALARS.get(name, ()))

    @given(cases(name), st.sampled_from([*METHODS, "default"]), st.booleans())
    def compare(case, method, compiled):
        levels, args = case
        options = {} if method == "default" else {"vmap_method": method}
        batched = in_levels(jax.vmap, functools.partial(function, **options), levels)
        if compiled:
            batched = jax.jit(batched)
        check(batched, in_levels(loop, function, levels), *args)

    compare()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_none_refuses(ops, name):
    function = functools.partial(getattr(ops, name), *SCALARS.get(name, ()), vmap_method=None)

    @settings(max_examples=3)
    @given(cases(name))
    def refuse(case):
        levels, args = case
        with pytest.raises(NotImplementedError, match=rf"fixture\.{name}: vmap_method is None"):
            in_levels(jax.vmap, function, levels)(*args)

    refuse()
