// The kernels of all sides: NVRTC compiles them for Rust, nvcc for C++.

extern "C" __global__ void scale(unsigned n, float s, const float* x, float* y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = s * x[i];
}

extern "C" __global__ void scale_pairs(unsigned n, float s, const float (*x)[2], float (*y)[2]) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i][0] = s * x[i][0];
    y[i][1] = s * x[i][1];
}

extern "C" __global__ void scale_in_place(unsigned n, float s, float* x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= s;
}

extern "C" __global__ void scale_pairs_in_place(unsigned n, float s, float (*x)[2]) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i][0] *= s;
    x[i][1] *= s;
}
