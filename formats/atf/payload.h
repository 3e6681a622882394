// What is in a function detail record. Two forms occur: the documented one, which we write, and
// a raw block of 516 bytes, which the published tracer writes. Anything else stays opaque bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/atf/headers.h"
#include "formats/core/bytes.h"

namespace collect::atf {

enum class PayloadForm : uint8_t { kDocumented, kTracerBlock };

// One view of both forms; `stack` is borrowed from the file.
struct FunctionDetail {
  PayloadForm form{};
  uint64_t function_id = 0;
  uint64_t x_regs[8] = {};
  uint64_t lr = 0;
  uint64_t fp = 0;
  uint64_t sp = 0;
  Bytes stack;
};

// Absent when the payload is neither 516 bytes nor 100 + its stack_size (0..256).
std::optional<FunctionDetail> decode_function_payload(Bytes payload);

}  // namespace collect::atf
