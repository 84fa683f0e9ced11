"""A library with CUDA handlers on a machine without a GPU, or without its driver."""

import jax
import numpy as np
import pytest

import jax_callable

x = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="session")
def cuda_ops(sibling):
    return jax_callable.load(sibling("fixture_cuda"))


def test_it_is_listed(cuda_ops):
    targets = {target.name: target for target in jax_callable.targets(cuda_ops)}
    assert targets["saxpy"].platforms == ("cpu", "CUDA")
    assert targets["sum"].platforms == ("CUDA",)
    modes = {
        handler.platform: handler.options["graph_mode"] for handler in targets["saxpy"].handlers
    }
    assert modes["CUDA"] == "Jax"
    assert targets["saxpy_uncaptured"].handlers[0].options["graph_mode"] == "None"
    assert targets["use_bad_ptx"].handlers[0].options["modules"] == ["bad_ptx"]
    assert "saxpy" in str(cuda_ops)


def test_cuda_handlers_have_a_stage_more(cuda_ops):
    opened = cuda_ops._opened
    for target in jax_callable.targets(cuda_ops):
        for handler in target.handlers:
            stages = [opened.handler(handler.index, stage) is not None for stage in range(5)]
            assert stages == [True, False, handler.platform == "CUDA", True, False]


def test_its_cpu_handlers_run(cuda_ops):
    np.testing.assert_array_equal(jax.jit(lambda x: cuda_ops.saxpy(2.0, x, x))(x), 3 * x)


def test_a_call_that_is_for_gpus_only_says_so(cuda_ops):
    with pytest.raises(NotImplementedError, match=r"fixture_cuda\.sum: no handler for .* cpu"):
        cuda_ops.sum(x)


def test_programs_for_gpus_are_lowered_here(cuda_ops):
    traced = jax.jit(cuda_ops.sum).trace(x)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "@fixture_cuda.sum." in text
