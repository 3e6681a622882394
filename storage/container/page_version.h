// Pages of one ATF version as pages of the other: every field that both versions have, links
// included. Version 2 has neither the thread id nor the call depth of an event; on the way back the
// one comes from the thread and the other is counted from calls and returns, as agents count it. So
// a depth is left out only where counting gives another one: behind a gap, or in files of others.
// Used on one thread; keeps a depth for each stream.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/atf/headers.h"
#include "formats/core/result.h"
#include "storage/model/session_types.h"

namespace collect::storage {

class PageVersion {
 public:
  // Records whose number, or whose link, is not below `end_of_v1` have no place in version 1.
  PageVersion(atf::Version from, atf::Version to, uint64_t end_of_v1 = atf::kMaxEventsV1 - 1)
      : from_(from), to_(to), end_(end_of_v1) {}

  // The page's bytes are borrowed until the next call. kDamaged: they are not the records that the
  // page counts.
  Result<Page> convert(const Page& page, uint32_t thread_id);

  // What there was no place for.
  uint64_t left_out(Lane lane) const { return left_out_[static_cast<size_t>(lane)]; }
  // What there was no place for, in words, without what is 0.
  std::vector<std::pair<std::string_view, uint64_t>> left_out() const;

 private:
  Status convert_events(const Page& page, uint32_t thread_id, uint32_t& count);
  Status convert_details(const Page& page, uint32_t thread_id, uint32_t& count);
  bool may_have_number(uint64_t number) const { return to_ == atf::Version::kV2 || number < end_; }

  const atf::Version from_;
  const atf::Version to_;
  const uint64_t end_;
  std::map<uint32_t, uint32_t> depths_;  // by stream
  std::vector<uint8_t> bytes_;
  uint64_t left_out_[2] = {};
  uint64_t depths_left_out_ = 0;
};

}  // namespace collect::storage
