// The names of a session's functions by their slots.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/calls/function_slots.h"
#include "storage/read/session_manifest.h"

namespace collect::exports {

class FunctionNames {
 public:
  // Both outlive it.
  FunctionNames(const read::NameTable& names, const calls::FunctionSlots& slots)
      : names_(names), slots_(slots) {}

  // Valid until the next call.
  std::string_view of(uint32_t slot) const {
    const uint64_t id = slots_.function_of(slot);
    return id == calls::FunctionSlots::kOther ? "(all other functions)" : names_.name_of(id);
  }
  // Null where it is not known.
  const read::SourceLocation* source_of(uint32_t slot) const {
    const uint64_t id = slots_.function_of(slot);
    return id == calls::FunctionSlots::kOther ? nullptr : names_.source_of(id);
  }
  uint64_t id_of(uint32_t slot) const { return slots_.function_of(slot); }

 private:
  const read::NameTable& names_;
  const calls::FunctionSlots& slots_;
};

}  // namespace collect::exports
