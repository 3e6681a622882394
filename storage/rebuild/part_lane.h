// One lane of a thread as one part has it: pages with the agent's numbers, and links in them too.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "storage/manifest/record_ranges.h"
#include "storage/rebuild/session_pages.h"

namespace collect::storage {

struct PartNumbers {
  RecordNumbers index;
  RecordNumbers detail;
  const RecordNumbers& of(Lane lane) const { return lane == Lane::kIndex ? index : detail; }
};

class PartLane {
 public:
  // `manifest` is the part's; `numbers` outlive this.
  PartLane(atf::Version version, LaneSource source, const Manifest& manifest,
           const PartNumbers& numbers);

  // The next page, valid until the next call of take(); null at the end. What was lost behind the
  // last record is no page: the manifest's counts of the thread say it.
  Result<const Page*> peek();
  void take() { page_.reset(); }
  // Checksum of the part's own file; whole once peek() says null.
  uint32_t checksum() const { return checksum_; }

 private:
  void number_page();
  void number_links();

  const atf::Version version_;
  const Lane lane_;
  LanePages pages_;
  const PartNumbers& numbers_;
  std::optional<Page> page_;
  std::vector<uint8_t> buffer_;
  std::vector<uint8_t> linked_;
  uint32_t checksum_ = 0;
};

}  // namespace collect::storage
