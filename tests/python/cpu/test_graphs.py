"""The graphs that targets keep, as far as no card is needed to ask for them."""

import numpy as np
import pytest

import jax_callable


@pytest.fixture
def default():
    yield
    jax_callable.set_default_graph_cache_max(32)


def test_limits_of_a_target(cuda_ops, default):
    graphs = cuda_ops.saxpy_warp.graphs
    assert (graphs.max, graphs.size) == (32, 0)
    for limit in (5, 0, None, np.int64(7), 2**70):
        graphs.max = limit
        assert graphs.max == (min(limit, 2**62) if limit is not None else None)
    graphs.max = "default"
    jax_callable.set_default_graph_cache_max(3)
    assert (graphs.max, jax_callable.default_graph_cache_max()) == (3, 3)
    jax_callable.set_default_graph_cache_max(None)
    assert (graphs.max, jax_callable.default_graph_cache_max()) == (None, None)
    assert cuda_ops.mix_warp.graphs.max is None
    graphs.max = 4
    assert (graphs.max, cuda_ops.mix_warp.graphs.max) == (4, None)
    graphs.max = "default"


def test_the_attribute_sets_the_limit(cuda_ops):
    assert cuda_ops.keeps_two.graphs.max == 2
    assert cuda_ops.keeps_all.graphs.max is None


@pytest.mark.parametrize("limit", [-1, -2, np.int32(-3)])
def test_negative_limits(cuda_ops, limit):
    with pytest.raises(ValueError, match=r"fixture_cuda.mix_warp: the limit must be 0 or more"):
        cuda_ops.mix_warp.graphs.max = limit
    with pytest.raises(ValueError, match="set_default_graph_cache_max: the limit must be 0"):
        jax_callable.set_default_graph_cache_max(limit)


@pytest.mark.parametrize("limit", [1.5, "3", True, [1]])
def test_limits_that_are_no_integers(cuda_ops, limit):
    with pytest.raises(TypeError, match=r"mix_warp: the limit must be an integer.*, got"):
        cuda_ops.mix_warp.graphs.max = limit
    with pytest.raises(TypeError, match="the limit must be an integer or None, got"):
        jax_callable.set_default_graph_cache_max(limit)


def test_statistics_and_clear_without_calls(cuda_ops):
    for name in ("mix_none", "mix_jax", "mix_warp", "mix_staged", "mix_staged_ex"):
        graphs = getattr(cuda_ops, name).graphs
        graphs.clear()
        statistics = graphs.statistics()
        assert set(statistics.values()) == {0}
        assert {"captures", "launches", "executables", "staged_bytes"} <= statistics.keys()
        assert f"graphs of fixture_cuda.{name}: at most 32; " in repr(graphs)


def test_targets_without_cuda_have_none(cuda_ops, ops):
    for function in (cuda_ops.mix_runs, ops.cumsum):
        with pytest.raises(AttributeError, match=r"has no CUDA graphs: .* for cpu only"):
            _ = function.graphs
        assert not hasattr(function, "graphs")
