// The part of index.lod that says of a thread what it took as a whole. LOD.md "Summary".
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/calls/lod/lod_layout.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::calls {

std::vector<uint8_t> encode_lod_summary(const LodSummary& summary);

// kDamaged: numbers that contradict each other. Takes memory for what the bytes hold alone.
Result<std::unique_ptr<LodSummary>> decode_lod_summary(Bytes bytes);

}  // namespace collect::calls
