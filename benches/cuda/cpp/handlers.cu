// The C++ side of the benchmarks on a GPU: the same kernels through ffi.h.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>

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

using Clock = std::chrono::steady_clock;
static std::atomic<int64_t> launch_nanoseconds{0};
static std::atomic<int64_t> launches{0};

// The least that a graph of our own can cost: made once by hand for buffers that never move, and
// then only launched. XLA calls this from one thread at a time here.
static ffi::Error ScaleGraphImpl(cudaStream_t stream, float s, int64_t reps, Numbers a, Pairs b,
                                 Numbers c_in, Pairs d_in, ffi::Result<Numbers> c,
                                 ffi::Result<Pairs> d, ffi::Result<Numbers> e,
                                 ffi::Result<Pairs> f) {
  using Launch = CUresult (*)(CUgraphExec, CUstream);
  static const auto launch =
      reinterpret_cast<Launch>(dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuGraphLaunch"));
  struct Made {
    std::array<const void*, 6> addresses{};
    cudaGraphExec_t executable = nullptr;
  };
  static std::map<int64_t, Made> all;
  Made& made = all[reps];
  const std::array<const void*, 6> addresses = {a.typed_data(),  b.typed_data(),  c->typed_data(),
                                                d->typed_data(), e->typed_data(), f->typed_data()};
  if (made.addresses != addresses) {
    if (made.executable != nullptr) cudaGraphExecDestroy(made.executable);
    made = Made{addresses, nullptr};
    cudaStream_t captured;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
    cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal);
    ffi::Error error = ScaleImpl(captured, s, reps, a, b, c_in, d_in, c, d, e, f);
    cudaStreamEndCapture(captured, &graph);
    cudaGraphInstantiate(&made.executable, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(captured);
    if (error.failure()) return error;
  }
  const Clock::time_point start = Clock::now();
  const CUresult status = launch(made.executable, stream);
  launch_nanoseconds += std::chrono::nanoseconds(Clock::now() - start).count();
  ++launches;
  if (status != CUDA_SUCCESS) return ffi::Error::Internal("cuGraphLaunch failed");
  return ffi::Error::Success();
}

// The mean nanoseconds of a `cuGraphLaunch` above since the last time, or 0.
extern "C" double take_launch_time() {
  const int64_t count = launches.exchange(0);
  const int64_t nanoseconds = launch_nanoseconds.exchange(0);
  return count == 0 ? 0.0 : static_cast<double>(nanoseconds) / static_cast<double>(count);
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
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_graph, ScaleGraphImpl, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_jax, ScaleImpl, Binding(), {Traits::kCmdBufferCompatible});
