// What two neighbouring ranges of a file say, as one: for the passes behind check.h.
#pragma once

#include <cstdint>
#include <utility>

#include "formats/atf/finding.h"
#include "formats/atf/layout.h"
#include "formats/core/crc32.h"

namespace collect::atf {

// section_checksum() of a ++ b from those of both.
inline uint32_t joined_checksum(Version version, uint32_t a, uint32_t b, uint64_t b_bytes) {
  return version == Version::kV1 ? crc32_ieee_combine(a, b, b_bytes)
                                 : crc32c_combine(a, b, b_bytes);
}

// Adds `from` to `to` as if each finding had been added there: listed while there is room, counted
// in any case.
inline void join_findings(Findings& to, Findings&& from) {
  uint64_t unlisted[3] = {from.notes(), from.warnings(), from.errors()};
  for (const Finding& finding : from.list()) {
    --unlisted[static_cast<size_t>(finding.severity)];
    to.add(finding);
  }
  // Only a full list leaves any out, and then this one is full too: these are counted alone.
  for (const Severity severity : {Severity::kNote, Severity::kWarning, Severity::kError}) {
    for (uint64_t left = unlisted[static_cast<size_t>(severity)]; left != 0; --left) {
      to.add_lazily(severity, [] { return Finding(); });
    }
  }
}

}  // namespace collect::atf
