// The kernels of the fixture: one thread for each element, unless said otherwise.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
    unsigned i = INDEX;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void double_each(unsigned n, const float* x, float* y) {
    unsigned i = INDEX;
    if (i < n) y[i] = 2 * x[i];
}

extern "C" __global__ void add_constant(unsigned n, float a, float* y) {
    unsigned i = INDEX;
    if (i < n) y[i] += a;
}

// One thread: the fixture is for right numbers, not for speed.
extern "C" __global__ void sum(unsigned n, const float* x, float* result) {
    float total = 0;
    for (unsigned i = 0; i < n; ++i) total += x[i];
    *result = total;
}

extern "C" __global__ void matmul(unsigned n, unsigned k, unsigned m, const float* a,
                                  const float* b, float* c) {
    unsigned i = INDEX;
    if (i >= n * m) return;
    float total = 0;
    for (unsigned j = 0; j < k; ++j) total += a[i / m * k + j] * b[j * m + i % m];
    c[i] = total;
}

struct Offsets {
    float weight;
    int shift;
};

extern "C" __global__ void scalars(unsigned n, double a, bool negate, Offsets offsets, short shift,
                                   const double* x, double* y) {
    unsigned i = INDEX;
    if (i >= n) return;
    double value = a * x[i] + offsets.weight * offsets.shift + shift;
    y[i] = negate ? -value : value;
}

// Vectors of three packed in an element.
extern "C" __global__ void cross(unsigned n, const float (*a)[3], const float (*b)[3],
                                 float (*c)[3]) {
    unsigned i = INDEX;
    if (i >= n) return;
    c[i][0] = a[i][1] * b[i][2] - a[i][2] * b[i][1];
    c[i][1] = a[i][2] * b[i][0] - a[i][0] * b[i][2];
    c[i][2] = a[i][0] * b[i][1] - a[i][1] * b[i][0];
}

// Bytes of an element of any type.
extern "C" __global__ void copy(unsigned n, const unsigned char* x, unsigned char* y) {
    unsigned i = INDEX;
    if (i < n) y[i] = x[i];
}

// The 8 bits of a float8_e4m3fn, as `__nv_fp8_e4m3` has them.
struct E4M3 {
    unsigned char bits;
};

extern "C" __global__ void replace_nan(unsigned n, E4M3 other, const E4M3* x, E4M3* y) {
    unsigned i = INDEX;
    if (i < n) y[i] = (x[i].bits & 0x7f) == 0x7f ? other : x[i];
}

// Writes where nothing is.
extern "C" __global__ void fault(unsigned long long address) {
    *reinterpret_cast<volatile int*>(address) = 1;
}
