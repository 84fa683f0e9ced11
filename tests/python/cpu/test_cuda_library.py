"""A library with CUDA handlers on a machine without a GPU, or without its driver."""

import jax
import jax.export
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


def test_scratch_is_that_of_the_platform(cuda_ops):
    traced = jax.jit(cuda_ops.quadruple).trace(x)
    results = {"cpu": "tensor<3xf32>, tensor<6x3xf64>", "cuda": "tensor<3xf32>, tensor<3xf32>"}
    for platform, types in results.items():
        assert f"({types})" in traced.lower(lowering_platforms=(platform,)).as_text()
    assert (np.asarray(cuda_ops.quadruple(x)) == 4 * x).all()


def test_one_program_for_platforms_with_other_scratch(cuda_ops):
    checks = jax_callable.disabled_checks(cuda_ops)
    program = jax.jit(lambda x: jax.vmap(cuda_ops.quadruple)(x) + 1)
    export = jax.export.export(program, disabled_checks=checks, platforms=("cpu", "cuda"))
    exported = export(x[None])
    text = exported.mlir_module()
    assert "tensor<6x3xf64>" in text
    np.testing.assert_array_equal(exported.call(x[None]), 4 * x[None] + 1)


def test_state_on_a_device_needs_one(cuda_ops):
    (handler,) = cuda_ops.add_weights.target.handlers
    assert handler.options["state"] == "Weights::new(cx, count)"
    assert [param.name for param in cuda_ops.add_weights.target.inputs] == ["count", "scale", "y"]
    traced = jax.jit(cuda_ops.add_weights, static_argnums=(0, 1)).trace(3, 2.0, x)
    assert "@fixture_cuda.add_weights." in traced.lower(lowering_platforms=("cuda",)).as_text()
