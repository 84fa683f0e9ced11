// The C++ side of the benchmarks on a GPU: the same kernels through ffi.h.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

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
// Nanoseconds of the driver's part of the calls below.
static std::vector<double> graph_times;

// A graph by hand, which knows all about its kernels: the least that one of our own can cost. XLA
// calls this from one thread at a time here. On XLA's stream it is not right beside other threads
// (docs/reliability.md); on a stream of its own, between two events, it is.
struct Made {
  std::array<void*, 6> addresses{};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::vector<cudaGraphNode_t> nodes;
  std::vector<cudaKernelNodeParams> params;
  cudaStream_t own = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
};

static cudaError_t Make(Made& made, const std::function<ffi::Error(cudaStream_t)>& work) {
  cudaStreamCreateWithFlags(&made.own, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&made.fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&made.join, cudaEventDisableTiming);
  cudaStreamBeginCapture(made.own, cudaStreamCaptureModeThreadLocal);
  if (work(made.own).failure()) return cudaErrorUnknown;
  cudaStreamEndCapture(made.own, &made.graph);
  size_t count = 0;
  cudaGraphGetNodes(made.graph, nullptr, &count);
  made.nodes.resize(count);
  made.params.resize(count);
  cudaGraphGetNodes(made.graph, made.nodes.data(), &count);
  for (size_t i = 0; i < count; ++i) {
    cudaGraphKernelNodeGetParams(made.nodes[i], &made.params[i]);
  }
  return cudaGraphInstantiate(&made.executable, made.graph, 0);
}

// The nodes are in the order of their launches. Each kernel has the number of elements, the scale,
// and then its addresses.
static cudaError_t Patch(Made& made, unsigned n, unsigned m, float s) {
  auto& [a, b, c, d, e, f] = made.addresses;
  void* all[4][4] = {{&n, &s, &a, &e}, {&m, &s, &b, &f}, {&n, &s, &c}, {&m, &s, &d}};
  for (size_t i = 0; i < made.nodes.size(); ++i) {
    cudaKernelNodeParams& params = made.params[i];
    params.kernelParams = all[i % 4];
    const cudaError_t status =
        cudaGraphExecKernelNodeSetParams(made.executable, made.nodes[i], &params);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <bool kForked>
static ffi::Error ScaleGraphImpl(cudaStream_t stream, float s, int64_t reps, Numbers a, Pairs b,
                                 Numbers c_in, Pairs d_in, ffi::Result<Numbers> c,
                                 ffi::Result<Pairs> d, ffi::Result<Numbers> e,
                                 ffi::Result<Pairs> f) {
  using Launch = CUresult (*)(CUgraphExec, CUstream);
  static const auto launch =
      reinterpret_cast<Launch>(dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuGraphLaunch"));
  static std::map<int64_t, Made> all;
  Made& made = all[reps];
  const std::array<void*, 6> addresses = {a.untyped_data(),  b.untyped_data(),  c->untyped_data(),
                                          d->untyped_data(), e->untyped_data(), f->untyped_data()};
  cudaError_t made_or_patched = cudaSuccess;
  if (made.executable == nullptr) {
    made_or_patched = Make(made, [&](cudaStream_t captured) {
      return ScaleImpl(captured, s, reps, a, b, c_in, d_in, c, d, e, f);
    });
    made.addresses = addresses;
  }
  const Clock::time_point start = Clock::now();
  if (made.addresses != addresses) {
    made.addresses = addresses;
    made_or_patched = Patch(made, a.element_count(), b.element_count() / 2, s);
  }
  CUresult status;
  if constexpr (kForked) {
    cudaEventRecord(made.fork, stream);
    cudaStreamWaitEvent(made.own, made.fork);
    status = launch(made.executable, made.own);
    cudaEventRecord(made.join, made.own);
    made_or_patched = std::max(made_or_patched, cudaStreamWaitEvent(stream, made.join));
  } else {
    status = launch(made.executable, stream);
    graph_times.push_back(std::chrono::nanoseconds(Clock::now() - start).count());
  }
  if (made_or_patched != cudaSuccess) return ffi::Error::Internal("no graph");
  if (status != CUDA_SUCCESS) return ffi::Error::Internal("cuGraphLaunch failed");
  return ffi::Error::Success();
}

// Copies the times since the last time, of at most `capacity` calls; none is running.
extern "C" size_t take_graph_times(double* times, size_t capacity) {
  const size_t calls = std::min(graph_times.size(), capacity);
  std::copy_n(graph_times.begin(), calls, times);
  graph_times.clear();
  return calls;
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
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_graph, ScaleGraphImpl<false>, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_forkedgraph, ScaleGraphImpl<true>, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale_jax, ScaleImpl, Binding(), {Traits::kCmdBufferCompatible});
