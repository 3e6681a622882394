// The sleds of a module that was built with -fxray-instrument: its xray_instr_map, read with care.
// XRAY.md. Of ring/sleds/sleds.cc alone, under its lock.
#pragma once

#include <cstdint>

#include "agent/ring/sleds/sled_code.h"
#include "agent/ring/sleds/xray_module.h"

namespace collect::agent {

struct Sled {
  uint64_t address;
  uint64_t function;
  SledKind kind;
  int8_t body = 0;  // of a planned one (formats/patch/plan_layout.h)
};

class CompiledSleds {
 public:
#if defined(__x86_64__)
  using Code = x86_64::SledCode;
#else
  using Code = aarch64::SledCode;
#endif

  CompiledSleds() = default;
  explicit CompiledSleds(collect_xray_module& registered) : module_(&registered) {}

  // Looks at every entry once. What is wrong with it, or null; functions() is 0 when nothing of it
  // can be traced. Takes the loader's lock.
  const char* inspect(char* path, size_t path_bytes);

  const collect_xray_module* registered() const { return module_; }
  uint32_t functions() const { return functions_; }
  // In its code, to find the module by.
  uint64_t address() const { return reinterpret_cast<uint64_t>(module_->enter); }

  // Visits the sleds whose code is as a compiler, or this agent, writes it.
  template <class Visit>
  void for_each(Visit visit) const {
    const Entry* const end = static_cast<const Entry*>(module_->map_end);
    for (const Entry* entry = static_cast<const Entry*>(module_->map_begin); entry != end;
         ++entry) {
      Sled sled{};
      uint8_t code[Code::kBytes];
      if (read_entry(*entry, sled) && encode(sled, code) && is_known_code(sled, code)) visit(sled);
    }
  }
  // Everything but the head, as it is in a sled that is traced.
  void write_tail(const Sled& sled) const;
  static constexpr Code::Head traced_head(const Sled&) { return Code::kTracedHead; }

 private:
  struct Entry {       // xray_instr_map, version 2
    int64_t sled;      //  0  relative to this field
    int64_t function;  //  8  relative to this field
    uint8_t kind;      // 16
    uint8_t always;    // 17
    uint8_t version;   // 18
    uint8_t zero[13];  // 19
  };
  static_assert(sizeof(Entry) == 32);

  bool read_entry(const Entry& entry, Sled& sled) const;
  bool encode(const Sled& sled, uint8_t (&code)[Code::kBytes]) const;
  static bool is_known_code(const Sled& sled, const uint8_t (&code)[Code::kBytes]);
  bool find_text(char* path, size_t path_bytes);

  collect_xray_module* module_ = nullptr;
  // The executable segment that has the trampolines, and so the sleds.
  uint64_t text_begin_ = 0;
  uint64_t text_end_ = 0;
  uint32_t functions_ = 0;
};

}  // namespace collect::agent
