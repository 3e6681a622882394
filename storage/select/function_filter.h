// `--function` of dump: which functions are wanted. A word means what it means to the daemon
// (formats/core/text/function_pattern.h): a name, a pattern, or, as 0x…, an id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/result.h"
#include "formats/core/text/function_pattern.h"
#include "storage/read/session_manifest.h"

namespace collect::select {

// Names as they come by, and which word never meant one.
class NameFilter {
 public:
  // kInvalidArgument, kLimit: as parse_function_words().
  static Result<NameFilter> make(const std::vector<std::string>& words);

  bool everything() const { return words_.empty(); }
  // `id` counts for words that are ids.
  bool wants(std::string_view name, uint64_t id);
  bool wants(std::string_view name) { return wants(name, kNoId); }
  // What the same words meant elsewhere counts as found here.
  void take_found(const NameFilter& other);

  // After everything was offered to wants(). kNotFound: a word meant nothing of it ("no WHAT
  // matches …"); names the word and what comes near it.
  Status check_all_found(std::string_view what, const std::vector<std::string>& known) const;

 private:
  static constexpr uint64_t kNoId = UINT64_MAX;

  std::vector<FunctionWord> words_;
  std::vector<bool> found_;  // by word
};

// A filter of function ids, each decided once.
class FunctionFilter {
 public:
  // `names` must outlive the filter.
  static Result<FunctionFilter> make(const std::vector<std::string>& words,
                                     const read::NameTable& names);

  bool everything() const { return filter_.everything(); }
  // Not thread-safe: it remembers its decisions.
  bool wants(uint64_t function_id);
  // `other` has the same words.
  void take_found(const FunctionFilter& other) { filter_.take_found(other.filter_); }
  // After the last event: with the functions that have names, whether or not they had an event.
  Status check_all_found(std::string_view what, const std::vector<storage::Symbol>& symbols);

 private:
  // Decisions beyond this many functions are made again each time.
  static constexpr size_t kMaxRemembered = size_t{1} << 20;

  NameFilter filter_;
  const read::NameTable* names_ = nullptr;
  std::unordered_map<uint64_t, bool> decided_;
};

}  // namespace collect::select
