"""Many calls and compilations: nothing is left over."""

import pytest

pytestmark = pytest.mark.slow

STRESS = """
import ctypes, gc

live_call_sites = ctypes.CDLL({library!r}).jax_callable_live_call_sites
live_call_sites.restype = ctypes.c_uint64
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
gpu = jax.devices("cuda")[0]
assert cuda.cuDeviceGet(ctypes.byref(device), gpu.local_hardware_id) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0

def free_memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value

def clear():
    jax.clear_caches()
    gc.collect()

def by_ten(x):
    return x.reshape(10, -1)

functions = [
    (jax.jit(lambda x, y: ops.saxpy(2.0, x, y)), lambda x, y: 2 * x + y),
    (jax.jit(lambda x, y: ops.saxpy_uncaptured(3.0, x, y)), lambda x, y: 3 * x + y),
    (jax.jit(lambda x, y: jax.vmap(ops.sum)(by_ten(x))), lambda x, y: by_ten(x).sum(1)),
]

def calls(count):
    for i in range(count):
        f, expected = functions[i % 3]
        x = (np.arange(100 * (1 + i % 4)) % 17 - 8).astype(np.float32)
        y = np.full_like(x, i)
        assert (np.asarray(f(x, y)) == expected(x, y)).all(), i
        if i % 100 == 99:
            assert live_call_sites() > 0
            clear()

calls(100)
lost, in_use = [], []
for _ in range(2):
    before = free_memory()
    calls(500)
    clear()
    lost.append(before - free_memory())
    stats = gpu.memory_stats()
    in_use.append(stats["bytes_in_use"] if stats else 0)
print(live_call_sites(), in_use[1] - in_use[0], *lost)
"""


def test_a_thousand_calls_leave_nothing(python, library):
    out = python(STRESS.format(library=str(library)))
    sites, grown, *lost = map(int, out.split())
    assert sites == 0, "call sites of dropped programs are alive"
    assert grown <= 0, "arrays are alive"
    # Other processes may use the device: what leaks, leaks in both rounds.
    assert min(lost) < 8 << 20, f"the device's memory shrinks: {lost} bytes in 500 calls each"
