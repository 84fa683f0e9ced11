// Stands between XLA and a handler, and notes how long each call takes: the same for all handlers,
// whatever they are written in. Each slot is one handler.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "xla/ffi/api/c_api.h"

namespace {

constexpr size_t kSlots = 64;
constexpr size_t kSamples = 1 << 14;

struct Slot {
  XLA_FFI_Handler* handler = nullptr;
  std::atomic<size_t> calls{0};
  uint32_t nanoseconds[kSamples];
};

Slot slots[kSlots];
std::atomic<size_t> used{0};

template <size_t kSlot>
XLA_FFI_Error* Timed(XLA_FFI_CallFrame* frame) {
  using Clock = std::chrono::steady_clock;
  Slot& slot = slots[kSlot];
  for (auto* e = frame->extension_start; e != nullptr; e = e->next) {
    if (e->type == XLA_FFI_Extension_Metadata) return slot.handler(frame);
  }
  const Clock::time_point start = Clock::now();
  XLA_FFI_Error* error = slot.handler(frame);
  const auto taken = std::chrono::nanoseconds(Clock::now() - start).count();
  const size_t call = slot.calls.fetch_add(1, std::memory_order_relaxed);
  if (call < kSamples) slot.nanoseconds[call] = static_cast<uint32_t>(taken);
  return error;
}

template <size_t... kSlot>
XLA_FFI_Handler* Trampoline(size_t slot, std::index_sequence<kSlot...>) {
  static XLA_FFI_Handler* const all[] = {Timed<kSlot>...};
  return all[slot];
}

}  // namespace

// The number of a slot for `handler`, or -1 if all are taken.
extern "C" int64_t take_slot(XLA_FFI_Handler* handler) {
  const size_t slot = used.fetch_add(1);
  if (slot >= kSlots) return -1;
  slots[slot].handler = handler;
  return static_cast<int64_t>(slot);
}

// The handler that XLA is to call.
extern "C" XLA_FFI_Handler* timed_handler(size_t slot) {
  return Trampoline(slot, std::make_index_sequence<kSlots>());
}

// Copies the nanoseconds of the calls since the last time, of at most `capacity` of them.
extern "C" size_t take_times(size_t slot, uint32_t* nanoseconds, size_t capacity) {
  size_t calls = slots[slot].calls.exchange(0);
  if (calls > kSamples) calls = kSamples;
  if (calls > capacity) calls = capacity;
  for (size_t i = 0; i < calls; ++i) nanoseconds[i] = slots[slot].nanoseconds[i];
  return calls;
}
