// A list that a peer hands out in pages: how long it may become, and whether it continues at all.
// The caller asks for the page of token() until goes_on() is false. A peer that never ends, that
// turns in a circle, or that hands out page after page with nothing in it is an error.
//
// Used on one thread.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>

#include "formats/core/result.h"

namespace collect {

inline constexpr size_t kMaxPageTokenBytes = 8192;
inline constexpr uint64_t kMaxEmptyPages = 1000;  // of one list

class UntrustedPages {
 public:
  // `what` begins messages: "the list of agents". `most_bytes`: of all pages.
  UntrustedPages(std::string what, uint64_t most_entries, uint64_t most_bytes = UINT64_MAX)
      : what_(std::move(what)), entries_left_(most_entries), bytes_left_(most_bytes) {}

  const std::string& token() const { return token_; }  // empty: of the first page
  bool goes_on() const { return !token_.empty(); }

  // A page came, with this token of the one behind it; empty: it was the last. kLimit: the list is
  // longer than it may be; kDamaged: it does not come to an end.
  Status turn(uint64_t entries, std::string next, uint64_t bytes = 0) {
    if (entries > entries_left_ || bytes > bytes_left_) {
      return Error{Code::kLimit, what_ + " is longer than it may be: ask for less of it"};
    }
    entries_left_ -= entries;
    bytes_left_ -= bytes;
    if (next.empty()) {
      token_.clear();
      return {};
    }
    if (next.size() > kMaxPageTokenBytes) {
      return damaged(
          fmt::format("names its next page with more than {} bytes", kMaxPageTokenBytes));
    }
    if (entries == 0 && ++empty_pages_ > kMaxEmptyPages) {
      return damaged(fmt::format("has more than {} empty pages", kMaxEmptyPages));
    }
    if (next == token_ || next == earlier_) return damaged("comes back to an earlier page");
    // Brent's search for a cycle: one earlier token, taken again after 1, 2, 4, … pages.
    if (++since_earlier_ == until_earlier_) {
      earlier_ = next;
      until_earlier_ *= 2;
      since_earlier_ = 0;
    }
    token_ = std::move(next);
    return {};
  }

 private:
  Error damaged(const std::string& how) const {
    return {Code::kDamaged, fmt::format("{} {}", what_, how)};
  }

  const std::string what_;
  uint64_t entries_left_;
  uint64_t bytes_left_;
  uint64_t empty_pages_ = 0;
  std::string token_;
  std::string earlier_;
  uint64_t since_earlier_ = 0;
  uint64_t until_earlier_ = 1;
};

}  // namespace collect
