// Kernels for the tests of graphs.

extern "C" __global__ void saxpy_into(unsigned n, float a, const float* x, float* y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void add(unsigned n, const float* x, const float* y, float* z) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}

// y is found by its distance from x.
extern "C" __global__ void add_at(unsigned n, const float* x, long long distance, float* z) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float* y = (const float*)((const char*)x + distance);
    if (i < n) z[i] = x[i] + y[i];
}

struct Arrays {
    const float* x;
    unsigned n;
    float scale;
    float* y;
};

extern "C" __global__ void scale_struct(Arrays arrays) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < arrays.n) arrays.y[i] = arrays.scale * arrays.x[i];
}

// Busy for about that many clock cycles, then y <- x.
extern "C" __global__ void slow_copy(unsigned n, long long cycles, const float* x, float* y) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
