// Turns pages that were encoded for the way into the records that are stored: WIRE.md "Page
// codecs".
//
// One for each turn of a data lane (LaneBuffer), so that it takes no more memory than one round of
// decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "formats/core/page.h"
#include "formats/core/result.h"

namespace collect::ingest {

class PageUnpacker {
 public:
  // Whether unpack() may be called for this page before clear().
  bool has_room(const Page& sent) const;
  // The page as it is stored, with the checksum of its records. The bytes of an encoded one lie
  // here, until clear(). kDamaged: it can't be decoded.
  Result<Page> unpack(const Page& sent);
  void clear() { used_ = 0; }

 private:
  std::unique_ptr<uint8_t[]> records_;  // kUnpackBytes, taken with the first encoded page
  std::unique_ptr<uint8_t[]> scratch_;  // as many
  size_t used_ = 0;
};

}  // namespace collect::ingest
