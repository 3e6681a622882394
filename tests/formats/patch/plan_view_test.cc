#include "formats/patch/plan_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace collect::patch {
namespace {

template <class T>
void append(std::vector<uint8_t>& out, const T& value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

constexpr uint32_t kFunction = 0x1230;
constexpr uint32_t kRegionBytes = kStubsBegin + 64;
constexpr uint32_t kBody = kStubsBegin + 1;
constexpr uint32_t kHead = kBody + kSledBodyBytes;

// By hand, from the layout: one function of 32 bytes, one window, one sled.
std::vector<uint8_t> small_plan() {
  PlanHeader header{};
  std::memcpy(header.magic, "CPLAN002", 8);
  header.build_id_bytes = 20;
  header.image_bytes = 0x4000;
  header.region_bytes = kRegionBytes;
  header.site_count = 1;
  header.sled_count = 1;
  header.relative_count = 1;
  header.absolute_count = 1;
  header.function_count = 1;
  header.processor = 62;
  std::vector<uint8_t> bytes;
  append(bytes, header);
  std::vector<uint8_t> region(kRegionBytes, 0x90);
  // push r10; mov r10d, 0x1230; call 0 (the trampoline for entries); pop r10; jmp .+4; the head
  const uint8_t sled[] = {0x41, 0x52, 0x41, 0xBA, 0x30, 0x12, 0x00, 0x00, 0xE8, 0xF2,
                          0xFD, 0xFF, 0xFF, 0x41, 0x5A, 0xEB, 0x02, 0x66, 0x90};
  static_assert(sizeof sled == kSledBodyBytes + kSledHeadBytes);
  std::memcpy(region.data() + kBody, sled, sizeof sled);
  bytes.insert(bytes.end(), region.begin(), region.end());
  PlanSite site{};
  site.address = kFunction;
  site.stub = kHead;
  site.bytes = 6;
  append(bytes, site);
  append(bytes, PlanSled{kHead, kFunction, 0, -19, 0});
  append(bytes, kStubsBegin + 20);
  append(bytes, kStubsBegin + 40);
  append(bytes, PlanFunction{kFunction, 32, 0});
  return bytes;
}

// The same for arm64.
std::vector<uint8_t> small_arm64_plan() {
  std::vector<uint8_t> bytes = small_plan();
  store_le(bytes.data() + offsetof(PlanHeader, processor), uint32_t{183});
  // b .+24; stp x30, x17, [sp, #-16]!; movz w17, #0x1230; movk w17, #0, lsl #16; bl 0 (the
  // trampoline for entries); ldp x30, x17, [sp], #16; b .-16: as llvm-mc encodes them
  const uint8_t code[] = {0x06, 0x00, 0x00, 0x14, 0xFE, 0x47, 0xBF, 0xA9, 0x11, 0x46,
                          0x82, 0x52, 0x11, 0x00, 0xA0, 0x72, 0x7C, 0xFF, 0xFF, 0x97,
                          0xFE, 0x47, 0xC1, 0xA8, 0xFC, 0xFF, 0xFF, 0x17};
  std::memcpy(bytes.data() + sizeof(PlanHeader) + kStubsBegin, code, sizeof code);
  const size_t site = sizeof(PlanHeader) + kRegionBytes;
  store_le(bytes.data() + site + offsetof(PlanSite, stub), kStubsBegin);
  bytes[site + offsetof(PlanSite, bytes)] = 4;
  const PlanSled sled{kStubsBegin, kFunction, 0, 0, 0};
  std::memcpy(bytes.data() + site + sizeof(PlanSite), &sled, sizeof sled);
  store_le(bytes.data() + site + sizeof(PlanSite) + sizeof(PlanSled), kStubsBegin + 24);
  return bytes;
}

std::string parse(const std::vector<uint8_t>& bytes) {
  PlanView view;
  const char* wrong = view.parse(bytes);
  return wrong == nullptr ? "" : wrong;
}

constexpr size_t kSites = sizeof(PlanHeader) + kRegionBytes;
constexpr size_t kSleds = kSites + sizeof(PlanSite);
constexpr size_t kRelatives = kSleds + sizeof(PlanSled);
constexpr size_t kAbsolutes = kRelatives + 4;
constexpr size_t kFunctions = kAbsolutes + 4;

std::vector<uint8_t> with(size_t at, uint32_t value) {
  std::vector<uint8_t> bytes = small_plan();
  store_le(bytes.data() + at, value);
  return bytes;
}

TEST(PlanViewTest, ReadsWhatIsThere) {
  const std::vector<uint8_t> bytes = small_plan();
  PlanView view;
  ASSERT_EQ(view.parse(bytes), nullptr);
  EXPECT_EQ(view.site(0).address, kFunction);
  EXPECT_EQ(view.site(0).bytes, 6);
  EXPECT_EQ(view.sled(0).sled, kHead);
  EXPECT_EQ(view.sled(0).body, -19);
  EXPECT_EQ(view.relative(0), kStubsBegin + 20);
  EXPECT_EQ(view.absolute(0), kStubsBegin + 40);
  EXPECT_EQ(view.function(0).bytes, 32u);
  EXPECT_EQ(view.region().size(), kRegionBytes);
  EXPECT_EQ(view.checksummed().size(), bytes.size() - 12);
}

TEST(PlanViewTest, RefusesEveryPrefix) {
  const std::vector<uint8_t> bytes = small_plan();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(parse({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "")
        << size;
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_NE(parse(longer), "");
}

// For any byte, what is accepted is within its bounds.
TEST(PlanViewTest, EveryFlippedByteIsRefusedOrHarmless) {
  const std::vector<uint8_t> good = small_plan();
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 0xFF;
    PlanView view;
    if (view.parse(bytes) != nullptr) continue;
    EXPECT_LE(view.site(0).address + uint64_t{view.site(0).bytes}, view.header().image_bytes);
    EXPECT_LT(view.site(0).stub, view.header().region_bytes);
    EXPECT_LE(view.sled(0).sled + kSledHeadBytes, view.header().region_bytes);
    EXPECT_LE(view.relative(0) + 4, view.header().region_bytes);
    EXPECT_LE(view.absolute(0) + 8, view.header().region_bytes);
  }
}

TEST(PlanViewTest, RefusesEachLimitPlusOne) {
  EXPECT_EQ(parse(small_plan()), "");
  EXPECT_NE(parse(with(offsetof(PlanHeader, build_id_bytes), kMaxPlanBuildId + 1)), "");
  EXPECT_NE(parse(with(offsetof(PlanHeader, image_bytes), kMaxImageBytes + 1)), "");
  EXPECT_NE(parse(with(offsetof(PlanHeader, region_bytes), kMaxRegionBytes + 8)), "");
  EXPECT_NE(parse(with(offsetof(PlanHeader, site_count), kMaxPlanEntries + 1)), "");
  EXPECT_NE(parse(with(kSites, 0x4000 - 5)), "");  // a window of 6 bytes
  EXPECT_NE(parse(with(kSites + 4, kRegionBytes)), "");
  EXPECT_NE(parse(with(kSites + 4, kStubsBegin - 1)), "");
  EXPECT_NE(parse(with(kSites + 8, kJumpBytes - 1)), "");
  EXPECT_NE(parse(with(kSites + 8, kMaxWindowBytes + 1)), "");
  EXPECT_NE(parse(with(kRelatives, kRegionBytes - 3)), "");
  EXPECT_NE(parse(with(kRelatives, kStubsBegin - 1)), "");
  EXPECT_NE(parse(with(kAbsolutes, kRegionBytes - 7)), "");
  EXPECT_NE(parse(with(kFunctions, 0x4000 - 31)), "");
  EXPECT_NE(parse(with(kFunctions + 8, static_cast<uint32_t>(Refusal::kCount))), "");
}

TEST(PlanViewTest, RefusesASledThatIsNone) {
  for (size_t i = 0; i < kSledBodyBytes + kSledHeadBytes; ++i) {
    std::vector<uint8_t> bytes = small_plan();
    bytes[sizeof(PlanHeader) + kBody + i] ^= 1;
    EXPECT_EQ(parse(bytes), "it has an invalid sled") << i;
  }
  const uint32_t last = load_le<uint32_t>(small_plan().data() + kSleds + 8);
  EXPECT_EQ(last, 0x0000ED00u);
  EXPECT_NE(parse(with(kSleds, kHead + 1)), "");
  EXPECT_NE(parse(with(kSleds, kRegionBytes)), "");
  EXPECT_NE(parse(with(kSleds + 4, kFunction + 1)), "");
  for (const uint32_t other : {1u, 3u, 0x100u, 0xED00u, 0x10000u}) {
    EXPECT_NE(parse(with(kSleds + 8, last ^ other)), "") << other;
  }
}

TEST(PlanViewTest, RefusesAnotherProcessor) {
  EXPECT_EQ(parse(with(offsetof(PlanHeader, processor), 0)), "its header is damaged");
  EXPECT_EQ(parse(with(offsetof(PlanHeader, processor), 40)), "its header is damaged");
  EXPECT_NE(parse(with(offsetof(PlanHeader, processor), 183)), "") << "x86-64's code";
}

TEST(PlanViewTest, ReadsArm64) {
  EXPECT_EQ(parse(small_arm64_plan()), "");
  for (size_t i = 0; i < kArm64SledBytes; ++i) {
    std::vector<uint8_t> bytes = small_arm64_plan();
    bytes[sizeof(PlanHeader) + kStubsBegin + i] ^= 1;
    EXPECT_EQ(parse(bytes), "it has an invalid sled") << i;
  }
  const auto changed = [](size_t at, uint32_t value) {
    std::vector<uint8_t> bytes = small_arm64_plan();
    store_le(bytes.data() + at, value);
    return parse(bytes);
  };
  EXPECT_EQ(changed(kSites, kFunction + 2), "it has a window that is no instruction");
  EXPECT_EQ(changed(kSites + 4, kStubsBegin + 2), "it has a window that is no instruction");
  EXPECT_EQ(changed(kSites + 8, 5), "it has a window that overlaps or leads nowhere");
  EXPECT_EQ(changed(kSleds, kStubsBegin + 2), "it has an invalid sled");
  EXPECT_EQ(changed(kRelatives, kStubsBegin + 20), "it has a fix-up that is no jump");
  EXPECT_EQ(changed(kRelatives, kStubsBegin + 26), "it has a fix-up that is no jump");
}

TEST(PlanViewTest, EachRefusalHasWords) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(Refusal::kCount); ++i) {
    EXPECT_STRNE(refusal_text(static_cast<Refusal>(i)), "unknown") << i;
  }
}

}  // namespace
}  // namespace collect::patch
