// The C++ side of the benchmarks on a GPU: the same kernels through ffi.h.
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels.cu"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Named, for the macros below split their arguments at every comma.
using Numbers = ffi::Buffer<ffi::F32, 1>;
using Pairs = ffi::Buffer<ffi::F32, 2>;
using Traits = ffi::Traits;
using PairsOut = float (*)[2];
using PairsIn = const float (*)[2];

static unsigned Blocks(unsigned n) { return (n + 255) / 256; }

// e <- s a, f <- s b; c <- s c and d <- s d, in place; all of it `reps` times. XLA gives the results
// of in-outs the memory of their operands.
static ffi::Error ScaleImpl(cudaStream_t stream, float s, int64_t reps, Numbers a, Pairs b, Numbers,
                            Pairs, ffi::Result<Numbers> c, ffi::Result<Pairs> d,
                            ffi::Result<Numbers> e, ffi::Result<Pairs> f) {
  const unsigned n = a.element_count();
  const unsigned m = b.element_count() / 2;
  auto b_pairs = reinterpret_cast<PairsIn>(b.typed_data());
  auto d_pairs = reinterpret_cast<PairsOut>(d->typed_data());
  auto f_pairs = reinterpret_cast<PairsOut>(f->typed_data());
  for (int64_t i = 0; i < reps; ++i) {
    scale<<<Blocks(n), 256, 0, stream>>>(n, s, a.typed_data(), e->typed_data());
    scale_pairs<<<Blocks(m), 256, 0, stream>>>(m, s, b_pairs, f_pairs);
    scale_in_place<<<Blocks(n), 256, 0, stream>>>(n, s, c->typed_data());
    scale_pairs_in_place<<<Blocks(m), 256, 0, stream>>>(m, s, d_pairs);
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return ffi::Error::Internal(cudaGetErrorString(error));
  return ffi::Error::Success();
}

static auto Binding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::PlatformStream<cudaStream_t>>()
      .Attr<float>("s")
      .Attr<int64_t>("reps")
      .Arg<Numbers>()
      .Arg<Pairs>()
      .Arg<Numbers>()
      .Arg<Pairs>()
      .Ret<Numbers>()
      .Ret<Pairs>()
      .Ret<Numbers>()
      .Ret<Pairs>();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_none, ScaleImpl, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_jax, ScaleImpl, Binding(), {Traits::kCmdBufferCompatible});
