// Which functions a user's word means: to the daemon (filter, detail) and to collectctl's commands
// for files. One meaning for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

namespace collect {

inline constexpr size_t kMaxFunctionPatterns = 1024;   // of one request
inline constexpr size_t kMaxFunctionWordBytes = 4096;  // a word is shorter

// "0x…" is an id, everything else a pattern.
struct FunctionWord {
  std::string text;
  std::optional<uint64_t> id;
};

// kInvalidArgument: an empty word, or an id that is no number of up to 16 hex digits; kLimit: too
// long, or too many.
Result<std::vector<FunctionWord>> parse_function_words(const std::vector<std::string>& words);

// The pattern (* and ?, formats/core/text/glob.h) means the linkage name, or the name as C++ writes
// it: from its beginning, or from any part of it on (`parse` and `json::parse` mean `void
// app::json::parse<int>(char*)`), with its arguments, without them, or without those of the
// template too. `linkage_name` may be empty where it is not known.
bool means_function(std::string_view pattern, std::string_view linkage_name,
                    std::string_view demangled);

// "parse" of "void app::json::parse<int>(char*)".
std::string_view base_name(std::string_view demangled);

}  // namespace collect
