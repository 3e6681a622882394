// What a detail record of a function says: which registers it has, under which names.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/atf/headers.h"
#include "formats/atf/payload.h"

namespace collect::select {

struct Register {
  const char* name;
  uint64_t value;
};

// f(Register) for those that the record has. Records of others set no flags: all their fields
// count.
template <class F>
void for_each_register(const atf::DetailRecord& record, const atf::FunctionDetail& detail, F&& f) {
  constexpr const char* kNames[8] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
  const bool said = detail.form == atf::PayloadForm::kDocumented && record.flags != 0;
  const auto valid = [&](uint32_t bit) { return !said || (record.flags & bit) != 0; };
  for (uint32_t i = 0; i < 8; ++i) {
    if (valid(uint32_t{atf::kDetailX0Valid} << i)) f(Register{kNames[i], detail.x_regs[i]});
  }
  if (valid(atf::kDetailLrValid)) f(Register{"lr", detail.lr});
  if (valid(atf::kDetailFpValid)) f(Register{"fp", detail.fp});
  if (valid(atf::kDetailSpValid)) f(Register{"sp", detail.sp});
}

inline std::optional<atf::FunctionDetail> function_of(const atf::DetailRecord& record) {
  if (record.type != atf::DetailType::kFunctionCall &&
      record.type != atf::DetailType::kFunctionReturn) {
    return std::nullopt;
  }
  return atf::decode_function_payload(record.payload);
}

}  // namespace collect::select
