// What WIRE.md says of each codec: "Page codecs", "Page header", and of Hello.features.
#include "proto/wire/codec_rules.h"

#include <gtest/gtest.h>

namespace collect::wire {
namespace {

constexpr auto kUndefined = static_cast<Codec>(std::size(kCodecRules));

TEST(CodecRules, BitsAndNumbersAreThoseOfTheDocument) {
  EXPECT_EQ(static_cast<int>(Codec::kColumns), 1);
  EXPECT_EQ(static_cast<int>(Codec::kTuples), 2);
  EXPECT_EQ(rule_of(Codec::kColumns)->feature, 1u << 0);
  EXPECT_EQ(rule_of(Codec::kTuples)->feature, 1u << 2);
}

TEST(CodecRules, EachCodecHasItsOwnNumberAndBit) {
  uint64_t bits = kFeatureStartFilter;
  for (const CodecRule& rule : kCodecRules) {
    EXPECT_EQ(rule_of(rule.codec), &rule) << "a number twice";
    EXPECT_EQ(bits & rule.feature, 0u) << "a bit twice";
    EXPECT_TRUE(rule.encodes_index || rule.encodes_detail);
    EXPECT_EQ(rule.feature == 0, rule.codec == Codec::kRaw);
    bits |= rule.feature;
  }
  EXPECT_EQ(kCodecFeatures, bits & ~uint64_t{kFeatureStartFilter});
}

TEST(CodecRules, NumbersBeyondTheTableAreNoCodec) {
  for (const Codec codec : {kUndefined, static_cast<Codec>(255)}) {
    EXPECT_EQ(rule_of(codec), nullptr);
    EXPECT_FALSE(encodes(codec, Lane::kIndex));
    EXPECT_FALSE(encodes(codec, Lane::kDetail));
    EXPECT_FALSE(is_agreed(codec, ~uint64_t{0}));
  }
}

TEST(CodecRules, TuplesAreForIndexPages) {
  EXPECT_TRUE(encodes(Codec::kTuples, Lane::kIndex));
  EXPECT_FALSE(encodes(Codec::kTuples, Lane::kDetail));
  for (const Codec codec : {Codec::kRaw, Codec::kColumns}) {
    EXPECT_TRUE(encodes(codec, Lane::kIndex));
    EXPECT_TRUE(encodes(codec, Lane::kDetail));
  }
}

TEST(CodecRules, RawPagesNeedNoFeature) {
  EXPECT_TRUE(is_agreed(Codec::kRaw, 0));
  EXPECT_FALSE(is_agreed(Codec::kColumns, 0));
  EXPECT_FALSE(is_agreed(Codec::kColumns, kFeatureTuples));
  EXPECT_TRUE(is_agreed(Codec::kColumns, kFeatureColumns));
}

TEST(CodecRules, TuplesAreAgreedToWithinOneMachine) {
  EXPECT_NE(codec_features(true) & kFeatureTuples, 0u);
  EXPECT_EQ(codec_features(false) & kFeatureTuples, 0u);
  EXPECT_NE(codec_features(false) & kFeatureColumns, 0u);
}

}  // namespace
}  // namespace collect::wire
