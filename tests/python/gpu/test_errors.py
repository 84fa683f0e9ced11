"""Failures: the right words, and a next call that works."""

import functools

import jax
import jax.export
import numpy as np
import pytest
from graphs import OWN

import jax_callable

JaxRuntimeError = jax.errors.JaxRuntimeError


def fails(call, *parts):
    with pytest.raises(JaxRuntimeError) as caught:
        jax.block_until_ready(call())
    text = str(caught.value)
    for part in parts:
        assert part in text, text
    return text


@pytest.mark.deliberate_error
def test_too_many_threads_fail_that_call_only(ops, numbers):
    x = numbers(5000)
    for _ in range(2):
        fails(
            lambda: ops.double_with_threads(2048, x),
            "fixture_cuda.double_with_threads: cannot launch the kernel `double_each`",
            "(2048, 1, 1) threads",
            "CUDA_ERROR_INVALID_VALUE",
        )
        np.testing.assert_array_equal(ops.double_with_threads(256, x), 2 * x)


@pytest.mark.deliberate_error
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bad_ptx", ["the driver refuses its PTX", "nonsense", "CUDA_ERROR_INVALID_PTX"]),
        ("bad_binary", ["the driver refuses its binary", "CUDA_ERROR_"]),
        ("bad_source", ["NVRTC cannot compile it", 'identifier "undeclared_name" is undefined']),
        ("missing_kernel", ["it has no kernel `g`", 'extern "C"']),
    ],
)
def test_modules_that_cannot_be_loaded(ops, name, parts, numbers):
    use = ops[f"fixture_cuda_broken.use_{name}"]
    for _ in range(2):
        fails(
            lambda: use(numbers(3)),
            f"fixture_cuda_broken.use_{name}: cannot load the CUDA module "
            f"`fixture_cuda_broken::{name}`",
            *parts,
        )
    np.testing.assert_array_equal(ops.sum(np.ones(3, np.float32)), 3)


@pytest.mark.deliberate_error
def test_parameters_of_other_sizes(ops, numbers):
    use = ops["fixture_cuda_broken.use_other_params"]
    text = fails(lambda: use(numbers(3)), "fixture_cuda_broken.use_other_params: ")
    if "ran without its module" in text:
        pytest.skip("the driver does not tell the sizes (CUDA before 12.4)")
    assert "the kernel `f` has parameters of [4, 8] bytes" in text
    assert "have [8, 8]" in text


def test_panics_and_own_errors(ops, numbers):
    fails(lambda: ops.panics(numbers(3)), "INTERNAL: fixture_cuda.panics: panicked: with 3")
    fails(
        lambda: ops.name_the_device(numbers(3)),
        "OUT_OF_RANGE: fixture_cuda.name_the_device: device 0, not capturing: true",
    )


@pytest.mark.parametrize("mode", ["none", "jax", *OWN])
def test_what_is_kept_of_the_call_is_refused(ops, mode, numbers):
    keep, x = getattr(ops, f"keep_{mode}"), numbers(100)
    f = jax.jit(keep, static_argnums=0)
    text = fails(lambda: f(True, x), f"FAILED_PRECONDITION: fixture_cuda.keep_{mode}: ")
    assert "has kept a clone of `cx.stream()`, or memory or a handle" in text
    assert "`cx.device().new_stream()`" in text
    np.testing.assert_array_equal(f(False, x), x)
    # The call site is gone then, and what was kept is not.
    jax.clear_caches()
    np.testing.assert_array_equal(keep(False, x), x)


def test_a_state_that_hangs_on_the_stream_is_refused(ops, numbers):
    fails(
        lambda: ops.keep_state(numbers(3)),
        "FAILED_PRECONDITION: fixture_cuda.keep_state: cannot build its state: ",
        "has kept a clone of `cx.stream()`",
    )


def test_a_target_for_gpus_only_called_on_the_cpu(ops, cpu, numbers):
    x = jax.device_put(numbers(3), cpu)
    fails(
        lambda: ops.sum(x), "FAILED_PRECONDITION: fixture_cuda.sum: it has no function for the CPU"
    )


WITHOUT_A_FEATURE = "because its library was built without the feature `cuda`"


@pytest.fixture
def cpu_only(ops, plain_ops):
    """Calls of targets for the CPU only, in two libraries, with the reasons on a GPU."""
    x = np.arange(3, dtype=np.float32)
    none = "it has no function for CUDA"
    return [
        (ops.on_the_cpu, (x,), f"fixture_cuda.on_the_cpu: {none}, only one for the CPU"),
        (plain_ops.cumsum, (x,), f"fixture.cumsum: {none}, {WITHOUT_A_FEATURE}"),
    ]


def test_a_target_for_the_cpu_only_called_on_a_gpu(cpu_only, gpus):
    for function, arguments, reason in cpu_only:
        on_gpu = jax.device_put(arguments, gpus[0])
        for call in (function, jax.jit(function)):
            fails(functools.partial(call, *on_gpu), f"FAILED_PRECONDITION: {reason}")


def test_an_exported_program_that_comes_to_the_wrong_platform(cpu_only, ops, plain_ops, cpu):
    checks = jax_callable.disabled_checks(ops, plain_ops)
    for function, arguments, reason in cpu_only:
        exported = jax.export.export(
            jax.jit(function), platforms=("cpu", "cuda"), disabled_checks=checks
        )(*arguments)
        for call in (exported.call, jax.jit(exported.call)):
            for _ in range(3):
                fails(functools.partial(call, *arguments), f"FAILED_PRECONDITION: {reason}")
        with jax.default_device(cpu):
            jax.block_until_ready(exported.call(*arguments))


CAPTURED = """
x = jnp.ones(10, jnp.float32)
f = jax.jit(lambda x: {call}(x))
error = None
for _ in range(5):
    try:
        f(x).block_until_ready()
    except jax.errors.JaxRuntimeError as caught:
        error = caught
print(error)
print(np.asarray(ops.sum(x)), np.asarray(ops.saxpy(2.0, x, x))[0])
"""


@pytest.mark.deliberate_error
def test_a_body_that_waits_in_a_capture(python):
    out = python(CAPTURED.format(call="ops.waits"), capture=True)
    assert "fixture_cuda.waits: " in out
    assert "graph_mode = None" in out
    assert out.splitlines()[-1] == "10.0 3.0"


def test_a_module_that_was_not_named_in_a_capture(python):
    out = python(CAPTURED.format(call="ops.uses_undeclared"), capture=True)
    # Where XLA runs the body once before its first capture, that loads the module.
    assert out.startswith("None") or (
        "fixture_cuda_broken.uses_undeclared: the CUDA module `fixture_cuda_broken::late` is not "
        "loaded" in out
    )
    assert out.splitlines()[-1] == "10.0 3.0"


def test_a_module_that_was_not_named_is_loaded_when_needed(ops, numbers):
    use = ops["fixture_cuda_broken.uses_undeclared_uncaptured"]
    assert np.asarray(use(numbers(3)))[0] == 2


@pytest.mark.deliberate_error
def test_waiting_for_each_call_names_the_kernel_that_fails(python):
    out = python(
        """
x = jnp.ones(10, jnp.float32)
print(np.asarray(ops.saxpy_uncaptured(2.0, x, x))[0], flush=True)
try:
    ops.faults(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(error, flush=True)
import os
os._exit(0)  # the CUDA of this process is broken
""",
        JAX_CALLABLE_SYNC="1",
    )
    assert out.startswith("3.0\n")
    assert "fixture_cuda.faults: a kernel of this call" in out
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in out
