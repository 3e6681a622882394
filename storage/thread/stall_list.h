// The stalls of one thread, or of a whole process, as the manifest shows them: of each kind in
// order of time, bounded, exactly counted.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage {

class StallList {
 public:
  // One that ends no later than the newest of its kind is a repeat.
  bool is_repeat(const Stall& stall) const;
  // What is no repeat. Where `most` of its kind are listed already, those that lie closest to each
  // other are joined.
  void add(Stall stall, size_t most);

  // Behind those that are in `out` already.
  void append_to(std::vector<Stall>& out, std::optional<uint32_t> thread) const;
  const StallTotals& totals() const { return totals_; }

 private:
  std::array<std::vector<Stall>, std::size(kStallKindNames)> listed_;  // by kind
  StallTotals totals_;
};

}  // namespace collect::storage
