// What holds for each page codec besides its bytes: which feature bit announces it, which lanes it
// encodes, and which agents it is agreed with (WIRE.md "Page codecs"). Agents, collectors and
// checks look here; a further codec is a line in kCodecRules and a case of decode_page.
#pragma once

#include <cstdint>

#include "formats/core/page.h"
#include "proto/wire/layout.h"

namespace collect::wire {

struct CodecRule {
  Codec codec;
  uint64_t feature;         // of Hello and Welcome; 0: allowed on every connection
  bool encodes_index;       // pages of the index lane may have it
  bool encodes_detail;      // those of the detail lane
  bool within_one_machine;  // a collector agrees to it for agents of its own machine alone
};
inline constexpr CodecRule kCodecRules[] = {
    {Codec::kRaw, 0, true, true, false},
    {Codec::kColumns, kFeatureColumns, true, true, false},
    {Codec::kTuples, kFeatureTuples, true, false, true},
};

// nullptr: no such codec. A peer or a file may have sent any number.
constexpr const CodecRule* rule_of(Codec codec) {
  for (const CodecRule& rule : kCodecRules) {
    if (rule.codec == codec) return &rule;
  }
  return nullptr;
}

// Whether a page of this lane can have it at all.
constexpr bool encodes(Codec codec, Lane lane) {
  const CodecRule* const rule = rule_of(codec);
  return rule != nullptr && (lane == Lane::kIndex ? rule->encodes_index : rule->encodes_detail);
}

// Whether pages may have it on a connection with these features.
constexpr bool is_agreed(Codec codec, uint64_t features) {
  const CodecRule* const rule = rule_of(codec);
  return rule != nullptr && (features & rule->feature) == rule->feature;
}

// The bits of the codecs that a collector agrees to.
constexpr uint64_t codec_features(bool within_one_machine) {
  uint64_t features = 0;
  for (const CodecRule& rule : kCodecRules) {
    if (within_one_machine || !rule.within_one_machine) features |= rule.feature;
  }
  return features;
}
// The features of all codecs.
inline constexpr uint64_t kCodecFeatures = codec_features(true);

}  // namespace collect::wire
