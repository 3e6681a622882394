// A page codec for each byte of a fuzz target's input, of all that there are.
#pragma once

#include <cstdint>
#include <iterator>

#include "proto/wire/codec_rules.h"

namespace collect::wire {

static_assert(kCodecRules[0].codec == Codec::kRaw, "the others encode");

inline Codec any_codec(uint32_t number) {
  return kCodecRules[1 + number % (std::size(kCodecRules) - 1)].codec;
}

}  // namespace collect::wire
