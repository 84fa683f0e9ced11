"""A library with CUDA handlers on a machine without a GPU, or without its driver."""

import jax
import jax.export
import numpy as np
import pytest

import jax_callable

x = np.arange(3, dtype=np.float32)


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


ONLY_CUDA = r"FAILED_PRECONDITION: fixture_cuda\.sum: it has no function for the CPU"


def test_a_call_that_is_for_gpus_only_says_so(cuda_ops):
    for call in (cuda_ops.sum, jax.jit(cuda_ops.sum), jax.jit(cuda_ops.sum).lower):
        with pytest.raises(jax.errors.JaxRuntimeError, match=ONLY_CUDA) as caught:
            call(x)
        assert "cpu::Array" in str(caught.value)
        assert "jax.device_put" in str(caught.value)


def test_a_call_that_is_for_the_cpu_only_says_so(ops):
    traced = jax.jit(ops.cumsum).trace(x)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"^FAILED_PRECONDITION: ") as caught:
        traced.lower(lowering_platforms=("cuda",))
    text = str(caught.value)
    assert "fixture.cumsum: it has no function for CUDA, because its library was built" in text
    assert "without the feature `cuda`" in text
    assert "--features cuda" in text


def test_other_platforms_are_refused(ops):
    traced = jax.jit(ops.cumsum).trace(x)
    for platforms in (("rocm",), ("cpu", "rocm")):
        with pytest.raises(NotImplementedError, match=r"fixture\.cumsum: no handler .* rocm"):
            traced.lower(lowering_platforms=platforms)


def export(function, platforms, *more, checks):
    options = {"platforms": platforms, "disabled_checks": [*checks, *more]}
    return jax.export.export(jax.jit(function), **options)(x)


def test_an_exported_program_that_comes_to_the_wrong_platform_says_so(cuda_ops):
    checks = jax_callable.disabled_checks(cuda_ops)
    anywhere = jax.export.DisabledSafetyCheck.platform()
    for exported in (
        export(cuda_ops.sum, ("cuda", "cpu"), checks=checks),
        export(cuda_ops.sum, ("cuda",), anywhere, checks=checks),
    ):
        call = jax.export.deserialize(exported.serialize()).call
        for function in (call, jax.jit(call)):
            with pytest.raises(jax.errors.JaxRuntimeError, match=ONLY_CUDA):
                jax.block_until_ready(function(x))
    np.testing.assert_array_equal(cuda_ops.saxpy(2.0, x, x), 3 * x)


def test_a_program_for_two_platforms_need_not_come_to_the_wrong_one(cuda_ops, ops):
    def program(x):
        by_platform = {"cpu": lambda x: ops.cumsum(x)[-1], "cuda": cuda_ops.sum}
        return jax.lax.platform_dependent(x, **by_platform)

    checks = jax_callable.disabled_checks(cuda_ops, ops)
    for function in (program, jax.vmap(program)):
        shape = x if function is program else x[None]
        exported = jax.export.export(
            jax.jit(function), platforms=("cpu", "cuda"), disabled_checks=checks
        )(shape)
        np.testing.assert_array_equal(exported.call(shape), shape.sum(-1))


def test_a_branch_that_is_not_taken_may_be_of_the_wrong_platform(cuda_ops):
    def program(take, x):
        return jax.lax.cond(take, cuda_ops.sum, lambda x: x[1], x)

    exported = jax.export.export(
        jax.jit(program),
        platforms=("cpu", "cuda"),
        disabled_checks=jax_callable.disabled_checks(cuda_ops),
    )(False, x)
    assert exported.call(False, x) == 1
    # JAX makes a ValueError of what a program reports at once that has run before.
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=ONLY_CUDA):
        jax.block_until_ready(exported.call(True, x))


def test_programs_for_gpus_are_lowered_here(cuda_ops):
    traced = jax.jit(cuda_ops.sum).trace(x)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "@fixture_cuda.sum." in text


def test_a_cpu_program_loads_no_modules(cuda_ops, monkeypatch):
    monkeypatch.setattr(type(cuda_ops._opened), "preload", lambda *_: pytest.fail("preloaded"))
    assert cuda_ops.sum._preload is not None
    jax.jit(cuda_ops.saxpy, static_argnums=0).lower(2.0, x, x)
    jax.jit(cuda_ops.sum).trace(x).lower(lowering_platforms=("cuda",))


def test_what_cannot_be_preloaded_is_told(cuda_ops):
    opened = cuda_ops._opened
    handlers = {each.platform: each for each in cuda_ops.saxpy.target.handlers}
    assert "saxpy) is no callable for CUDA" in opened.preload(handlers["cpu"].index, 0)
    for index in (cuda_ops.sum.target.absent.index, 1 << 31):
        assert "(none) is no callable for CUDA" in opened.preload(index, 0)
    problem = opened.preload(handlers["CUDA"].index, -1)
    assert "libcuda.so.1" in problem or "ordinal -1" in problem


def test_a_library_without_cuda_preloads_nothing(ops):
    assert ops.cumsum._preload is None
    assert "is no callable for CUDA" in ops._opened.preload(0, 0)


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


def test_a_process_that_sees_no_gpu(cuda_ops, python):
    code = """if True:
        import functools, sys
        import jax, jax_callable, numpy as np
        ops = jax_callable.load(sys.argv[1])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        function = functools.partial(ops.saxpy, 2.0)
        print(len(jax.devices()), np.asarray(jax.jit(function)(x[0], x[1])).tolist())
        print(np.asarray(jax.pmap(function)(x, x)).tolist())
        print(np.asarray(jax.vmap(function)(x, x)).tolist())
    """
    devices = "--xla_force_host_platform_device_count=2"
    printed = python(code, cuda_ops._opened.path, CUDA_VISIBLE_DEVICES="", XLA_FLAGS=devices)
    triple = "[[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]]"
    assert printed.splitlines() == ["2 [3.0, 6.0, 9.0]", triple, triple]


def test_a_default_device_given_as_a_string(cuda_ops):
    with jax.default_device("cpu"):
        for function in (cuda_ops.saxpy, jax.jit(cuda_ops.saxpy, static_argnums=0)):
            np.testing.assert_array_equal(function(2.0, x, x), 3 * x)
