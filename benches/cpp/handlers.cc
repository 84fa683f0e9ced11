// The C++ side of the benchmarks, on the headers that jaxlib ships.
#include <cstddef>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Named, for the macro below splits its arguments at every comma.
using Vector = ffi::Buffer<ffi::F32, 1>;

static ffi::Error AxpbyImpl(float a, float b, Vector x, Vector y, ffi::Result<Vector> z) {
  const float* xs = x.typed_data();
  const float* ys = y.typed_data();
  float* zs = z->typed_data();
  const size_t n = z->element_count();
  for (size_t i = 0; i < n; ++i) zs[i] = a * xs[i] + b * ys[i];
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(axpby, AxpbyImpl,
                              ffi::Ffi::Bind()
                                  .Attr<float>("a")
                                  .Attr<float>("b")
                                  .Arg<Vector>()
                                  .Arg<Vector>()
                                  .Ret<Vector>());

// What XLA itself costs: a handler that answers the metadata query and does nothing.
extern "C" XLA_FFI_Error* empty(XLA_FFI_CallFrame* frame) {
  for (auto* e = frame->extension_start; e != nullptr; e = e->next) {
    if (e->type == XLA_FFI_Extension_Metadata) {
      auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
      metadata->api_version.major_version = 0;
      metadata->api_version.minor_version = 1;
      return nullptr;
    }
  }
  return nullptr;
}
