"""Values of every element type."""

import ml_dtypes
import numpy as np

DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}


FLOAT8 = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "float8_e4m3fnuz",
        "float8_e4m3",
        "float8_e3m4",
        "float8_e8m0fnu",
    )
}


def bits(array):
    """The bytes of an array, in which -0.0 differs from 0.0 and NaN equals itself."""
    array = np.asarray(array)
    return array.dtype, array.shape, array.tobytes()


def special(name):
    """The values of a type that are most easily damaged on their way; of small ones, all."""
    if name in FLOAT8:
        return np.arange(256, dtype=np.uint8).view(FLOAT8[name])
    dtype = DTYPES[name]
    if dtype.kind == "b":
        return np.array([True, False, False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
    if dtype.kind == "c":
        parts = special(f"float{4 * dtype.itemsize}")
        pairs = np.stack([parts, np.roll(parts, 1)], axis=-1)
        return np.ascontiguousarray(pairs).view(dtype).reshape(-1)
    limits = ml_dtypes.finfo(dtype)
    values = [0.0, -0.0, 1.5, limits.max, limits.min, limits.tiny, np.inf, -np.inf, np.nan]
    plain = np.array([*values, limits.smallest_subnormal], dtype)
    # A NaN with a sign and a payload.
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    payload = np.array([np.iinfo(unsigned).max - 5], unsigned).view(dtype)
    return np.concatenate([plain, payload])
