#include "formats/patch/plan_view.h"

#include <algorithm>

namespace collect::patch {
namespace {

int64_t body_of(const PlanSled& sled) {
  return int64_t{sled.sled} + kSledHeadBytes + sled.body;
}

}  // namespace

const char* refusal_text(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "traced";
    case Refusal::kStart:
      return "the program's first code, which no one calls";
    case Refusal::kLinkage:
      return "jumps to other modules";
    case Refusal::kSignalFrame:
      return "returns from a signal";
    case Refusal::kUnwindUnknown:
      return "unwind information that is not understood";
    case Refusal::kUndecodable:
      return "data between its code";
    case Refusal::kRunsOn:
      return "runs into what follows it";
    case Refusal::kNoRoomAtEntry:
      return "no room for a jump at its beginning";
    case Refusal::kLoopToEntry:
      return "jumps back to its beginning";
    case Refusal::kNoRoomAtExit:
      return "no room for a jump where it returns";
    case Refusal::kUnevenReturn:
      return "returns with something on its stack";
    case Refusal::kUnknownJump:
      return "a jump with unknown targets";
    case Refusal::kJumpsOut:
      return "jumps into another function";
    case Refusal::kEnteredInside:
      return "another function jumps into it";
    case Refusal::kSharedPart:
      return "shares a part with another function";
    case Refusal::kPersonality:
      return "chooses the handler of an exception";
    case Refusal::kNotMovable:
      return "an instruction that cannot be moved";
    case Refusal::kCount:
      break;
  }
  return "unknown";
}

const char* PlanView::parse(Bytes bytes) {
  if (bytes.size() < sizeof(PlanHeader)) return "it is too short";
  if (bytes.size() > kMaxPlanBytes) return "it is too long";
  bytes_ = bytes;
  memcpy(&header_, bytes.data(), sizeof header_);
  if (memcmp(header_.magic, kPlanMagic, sizeof kPlanMagic) != 0) return "it is no plan";
  if (header_.build_id_bytes > kMaxPlanBuildId || header_.image_bytes > kMaxImageBytes ||
      header_.region_bytes < kStubsBegin || header_.region_bytes > kMaxRegionBytes ||
      header_.region_bytes % 8 != 0 || header_.site_count > kMaxPlanEntries ||
      header_.sled_count > kMaxPlanEntries || header_.relative_count > kMaxPlanEntries ||
      header_.absolute_count > kMaxPlanEntries || header_.function_count > kMaxPlanEntries ||
      (header_.processor != static_cast<uint32_t>(Processor::kX86_64) && !is_arm64())) {
    return "its header is damaged";
  }
  sites_ = sizeof(PlanHeader) + uint64_t{header_.region_bytes};
  sleds_ = sites_ + uint64_t{header_.site_count} * sizeof(PlanSite);
  relatives_ = sleds_ + uint64_t{header_.sled_count} * sizeof(PlanSled);
  absolutes_ = relatives_ + uint64_t{header_.relative_count} * sizeof(uint32_t);
  functions_ = absolutes_ + uint64_t{header_.absolute_count} * sizeof(uint32_t);
  const uint64_t end = functions_ + uint64_t{header_.function_count} * sizeof(PlanFunction);
  if (end != bytes.size()) return "its size is not what its header says";
  if (const char* wrong = check_sites()) return wrong;
  if (const char* wrong = check_sleds()) return wrong;
  if (const char* wrong = check_fix_ups()) return wrong;
  return check_functions();
}

const char* PlanView::check_sites() const {
  const size_t least = is_arm64() ? kArm64JumpBytes : kJumpBytes;
  const size_t most = is_arm64() ? kArm64JumpBytes : kMaxWindowBytes;
  uint64_t free_from = 0;
  for (uint32_t i = 0; i < header_.site_count; ++i) {
    const PlanSite one = site(i);
    if (is_arm64() && (one.address % 4 != 0 || one.stub % 4 != 0)) {
      return "it has a window that is no instruction";
    }
    if (one.bytes < least || one.bytes > most || one.address < free_from ||
        one.address + uint64_t{one.bytes} > header_.image_bytes || one.stub < kStubsBegin ||
        one.stub >= header_.region_bytes) {
      return "it has a window that overlaps or leads nowhere";
    }
    free_from = one.address + uint64_t{one.bytes};
  }
  return nullptr;
}

bool PlanView::is_sled(const PlanSled& sled) const {
  uint16_t head;
  memcpy(&head, region().data() + sled.sled, sizeof head);
  const int64_t begin = body_of(sled);
  const uint8_t* code = region().data() + begin;
  uint32_t function;
  int32_t distance;
  memcpy(&function, code + 4, sizeof function);
  memcpy(&distance, code + 9, sizeof distance);
  const int64_t back = begin + int64_t{kSledBodyBytes} + static_cast<int8_t>(code[16]);
  return head == kSledIdleHead && code[0] == 0x41 && code[1] == 0x52 && code[2] == 0x41 &&
         code[3] == 0xBA && function == sled.function && code[8] == 0xE8 &&
         begin + 13 + distance == int64_t{sled.use} * kTrampolineSpacing && code[13] == 0x41 &&
         code[14] == 0x5A && code[15] == 0xEB && back == int64_t{sled.sled} + kSledHeadBytes;
}

bool PlanView::is_arm64_sled(const PlanSled& sled) const {
  const auto away = static_cast<uint32_t>(
      (int64_t{sled.use} * kTrampolineSpacing - (int64_t{sled.sled} + 16)) / 4);
  const uint32_t expected[] = {kArm64SledIdleHead,
                               kArm64SledPush,
                               0x52800011 | (sled.function & 0xFFFF) << 5,
                               0x72A00011 | (sled.function >> 16) << 5,
                               0x94000000 | (away & ~kArm64BranchMask),
                               kArm64SledPop};
  static_assert(sizeof expected == kArm64SledBytes);
  return sled.sled < kArm64Reach &&
         memcmp(region().data() + sled.sled, expected, sizeof expected) == 0;
}

const char* PlanView::check_sleds() const {
  int64_t free_from = kStubsBegin;
  for (uint32_t i = 0; i < header_.sled_count; ++i) {
    const PlanSled one = sled(i);
    int64_t begin = one.sled;
    int64_t end = begin + kArm64SledBytes;
    if (!is_arm64()) {
      begin = std::min<int64_t>(one.sled, body_of(one));
      end = std::max<int64_t>(int64_t{one.sled} + kSledHeadBytes, body_of(one) + kSledBodyBytes);
    }
    if (begin < free_from || one.sled % (is_arm64() ? 4 : 2) != 0 || end > header_.region_bytes ||
        one.function >= header_.image_bytes || one.use > static_cast<uint8_t>(SledUse::kTail) ||
        one.reserved != 0 || !(is_arm64() ? is_arm64_sled(one) : is_sled(one))) {
      return "it has an invalid sled";
    }
    free_from = end;
  }
  return nullptr;
}

const char* PlanView::check_fix_ups() const {
  for (uint32_t i = 0; i < header_.relative_count; ++i) {
    if (relative(i) < kStubsBegin || relative(i) > header_.region_bytes - sizeof(uint32_t)) {
      return "it has a fix-up outside its code";
    }
    if (!is_arm64()) continue;
    const uint8_t* const word = region().data() + relative(i);
    if (relative(i) % 4 != 0 || (load_le<uint32_t>(word) & kArm64BranchMask) != kArm64Branch) {
      return "it has a fix-up that is no jump";
    }
  }
  for (uint32_t i = 0; i < header_.absolute_count; ++i) {
    if (absolute(i) < kStubsBegin || absolute(i) > header_.region_bytes - sizeof(uint64_t)) {
      return "it has a fix-up outside its code";
    }
  }
  return nullptr;
}

const char* PlanView::check_functions() const {
  uint64_t free_from = 0;
  for (uint32_t i = 0; i < header_.function_count; ++i) {
    const PlanFunction one = function(i);
    if (one.address < free_from || one.address + uint64_t{one.bytes} > header_.image_bytes ||
        one.refusal >= static_cast<uint32_t>(Refusal::kCount)) {
      return "it has a function that is nowhere";
    }
    free_from = one.address + uint64_t{one.bytes};
  }
  return nullptr;
}

}  // namespace collect::patch
