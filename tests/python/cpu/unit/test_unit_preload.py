"""Loading CUDA modules when a call is traced, with CPU devices in the place of GPUs."""

import types

import jax
import jax.numpy as jnp
import pytest
from manifests import array, handler, target

from jax_callable import _preload, _primitive
from jax_callable._callable import Callable


class Opened:
    """A library that notes what it is asked to load."""

    def __init__(self, problem=None):
        self.loaded = []
        self._problem = problem

    def preload(self, index, ordinal):
        self.loaded.append((index, ordinal))
        return self._problem


def make(opened, preload="CurrentDevice"):
    handlers = [handler(), {**handler("CUDA", 7), "preload": preload}]
    params = [array("x"), array("y", "output")]
    made = target("scale", *params, handlers=handlers)
    return Callable(made, made.target, "", _preload.of(opened, made))


@pytest.fixture
def gpus(monkeypatch):
    """Two of the CPU devices, as if they were CUDA's, and JAX preferred them."""
    devices = jax.devices()[2:]
    assert [device.local_hardware_id for device in devices] == [2, 3]
    cuda = types.SimpleNamespace(local_devices=lambda: devices)
    backends = {**_primitive._xla_bridge._backends, "cuda": cuda}
    fake = types.SimpleNamespace(
        _backends=backends,
        get_backend=lambda platform: cuda if platform in (None, "gpu") else backends[platform],
    )
    monkeypatch.setattr(_primitive, "_xla_bridge", fake)
    return devices


x = jnp.ones(3)


def trace(scale):
    jax.make_jaxpr(lambda x: scale(scale(x)))(x)


def test_nothing_is_loaded_without_cuda():
    for preload in ("CurrentDevice", "AllDevices", "None"):
        opened = Opened()
        trace(make(opened, preload))
        with jax.default_device("gpu"):
            trace(make(opened, preload))
        assert opened.loaded == []


def test_nothing_is_asked_of_a_jax_that_has_not_started(monkeypatch):
    def start(*_):
        pytest.fail("a backend was started")

    monkeypatch.setattr(
        _primitive, "_xla_bridge", types.SimpleNamespace(_backends={}, get_backend=start)
    )
    opened = Opened()
    trace(make(opened))
    assert opened.loaded == []


def test_a_target_without_cuda_or_that_wants_nothing_has_no_preload():
    assert make(Opened(), "None")._preload is None
    assert _preload.of(Opened(), target("f", array("x"), array("y", "output"))) is None


@pytest.mark.parametrize(
    ("preload", "expected"),
    [("CurrentDevice", [2]), ("AllDevices", [2, 3]), ("None", [])],
)
def test_each_device_is_loaded_once(gpus, preload, expected):
    opened = Opened()
    scale = make(opened, preload)
    for _ in range(2):
        trace(scale)
    assert opened.loaded == [(7, ordinal) for ordinal in expected]


def test_the_default_device_decides(gpus):
    opened = Opened()
    scale = make(opened)
    for other in ("cpu", jax.devices()[0]):
        with jax.default_device(other):
            trace(scale)
    assert opened.loaded == []
    with jax.default_device(gpus[1]):
        trace(scale)
    assert opened.loaded == [(7, 3)]
    with jax.default_device("gpu"):
        trace(scale)
    assert opened.loaded == [(7, 3), (7, 2)]


def test_all_devices_are_for_programs_on_a_gpu(gpus):
    opened = Opened()
    scale = make(opened, "AllDevices")
    with jax.default_device("cpu"):
        trace(scale)
    assert opened.loaded == []


def test_devices_are_counted_within_the_process(gpus, monkeypatch):
    # As in the third of three processes with two GPUs each.
    local = [types.SimpleNamespace(id=4 + n, local_hardware_id=n) for n in range(2)]
    cuda = _primitive._xla_bridge._backends["cuda"]
    monkeypatch.setattr(cuda, "local_devices", lambda: local)
    opened = Opened()
    trace(make(opened, "AllDevices"))
    assert opened.loaded == [(7, 0), (7, 1)]


def test_eager_calls_leave_it_to_their_arrays(gpus, monkeypatch):
    opened = Opened()
    monkeypatch.setattr("jax_callable._callable.bind", lambda call, operands: [None])
    make(opened)(x)
    assert opened.loaded == []


@pytest.mark.parametrize("transform", [jax.vmap, jax.jit, lambda f: jax.vmap(jax.jit(f))])
def test_every_kind_of_trace_counts(gpus, transform):
    opened = Opened()
    scale = make(opened)
    jax.eval_shape(transform(lambda x: scale(x.reshape(-1))), x)
    assert opened.loaded == [(7, 2)]


def test_a_failure_is_left_to_the_first_run(gpus, caplog):
    opened = Opened("the driver refuses it")
    scale = make(opened)
    with caplog.at_level("DEBUG", "jax_callable"):
        trace(scale)
        trace(scale)
    assert opened.loaded == [(7, 2)]
    assert caplog.messages == ["demo.scale: not preloaded on device 2: the driver refuses it"]
