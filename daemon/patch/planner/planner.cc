#include "daemon/patch/planner/planner.h"

#include <algorithm>
#include <cstring>

#include "daemon/patch/planner/arm64_instruction.h"
#include "daemon/patch/planner/arm64_stub_writer.h"
#include "daemon/patch/planner/code_map.h"
#include "daemon/patch/planner/stub_writer.h"
#include "daemon/patch/planner/windows.h"
#include "formats/core/crc32.h"

namespace collect::patch {
namespace {

class Planner {
 public:
  Planner(const ElfImage& image, const UnwindTable& table, const CodeMap& map)
      : image_(image), table_(table), map_(map) {}

  Result<std::vector<uint8_t>> run() {
    std::vector<std::vector<uint32_t>> fragments(table_.frames.size());
    for (uint32_t i = 0; i < map_.parts().size(); ++i) {
      if (map_.parts()[i].function != i) fragments[map_.parts()[i].function].push_back(i);
    }
    for (uint32_t i = 0; i < map_.parts().size(); ++i) {
      const Part& part = map_.parts()[i];
      if (part.is_fragment || part.refusal == Refusal::kLinkage) continue;
      const Frame& frame = table_.frames[i];
      Refusal refusal = part.refusal;
      if (refusal == Refusal::kNone) refusal = plan_function(i, fragments[i]);
      functions_.push_back({frame.begin, frame.end - frame.begin, static_cast<uint32_t>(refusal)});
      if (stubs_.region.size() > max_region() || stubs_.relatives.size() > kMaxPlanEntries) {
        return Error{Code::kLimit, "its plan would be too large"};
      }
    }
    return file();
  }

 private:
  uint64_t max_region() const { return image_.is_arm64() ? kArm64Reach / 2 : kMaxRegionBytes; }

  Refusal plan_function(uint32_t root, const std::vector<uint32_t>& fragments) {
    std::vector<uint32_t> members = {root};
    members.insert(members.end(), fragments.begin(), fragments.end());
    std::vector<PartCode> codes(members.size());
    std::vector<std::vector<Window>> windows(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      Refusal refusal = read_part(members[i], codes[i]);
      if (refusal == Refusal::kNone) {
        refusal = image_.is_arm64() ? find_arm64_windows(map_, codes[i], i == 0, windows[i])
                                    : find_windows(map_, codes[i], i == 0, windows[i]);
      }
      if (refusal != Refusal::kNone) return refusal;
    }
    const uint32_t function = table_.frames[root].begin;
    for (size_t i = 0; i < members.size(); ++i) {
      for (const Window& window : windows[i]) {
        if (image_.is_arm64()) {
          write_arm64_stub(codes[i], window, function, stubs_);
          continue;
        }
        const uint32_t address = codes[i].instructions[window.begin].address;
        write_stub(codes[i], window, image_.at(address).first(window.bytes), function, stubs_);
      }
    }
    return Refusal::kNone;
  }

  Refusal read_part(uint32_t index, PartCode& code) const {
    const Frame& frame = table_.frames[index];
    code.bytes = map_.code(frame);
    if (!decode_all(image_.processor(), code.bytes, frame.begin, code.instructions) ||
        code.instructions.empty()) {
      return Refusal::kUndecodable;
    }
    if (!image_.is_arm64()) code.padding = padding_behind(index);
    auto last = code.instructions.rbegin();
    while (last != code.instructions.rend() && last->is_filling()) ++last;
    if (last == code.instructions.rend()) return Refusal::kRunsOn;
    const bool calls = last->flow == Flow::kCall || last->flow == Flow::kIndirectCall;
    if (last->goes_on() && !calls) return Refusal::kRunsOn;
    for (uint32_t i = 0; i < code.instructions.size(); ++i) {
      const Refusal refusal = judge(index, i, code);
      if (refusal != Refusal::kNone) return refusal;
    }
    return Refusal::kNone;
  }

  // Bytes between the part and the next frame, if they are nothing but filling.
  uint32_t padding_behind(uint32_t index) const {
    const uint32_t begin = table_.frames[index].end;
    Bytes bytes = image_.at(begin);
    if (bytes.empty() || !image_.is_code(begin)) return 0;
    if (index + 1 < table_.frames.size()) {
      const uint64_t room = table_.frames[index + 1].begin - begin;
      bytes = bytes.first(std::min<uint64_t>(bytes.size(), room));
    }
    uint32_t used = 0;
    Instruction one;
    while (used < kJumpBytes && used < bytes.size() &&
           decode(bytes.subspan(used), begin + used, one) && one.is_filling()) {
      used += one.length;
    }
    return used;
  }

  bool is_inside(uint32_t index, uint32_t address) const {
    const Frame* to = table_.find(address);
    return to != nullptr &&
           map_.parts()[map_.index_of(*to)].function == map_.parts()[index].function;
  }

  // Linkers put a jump in place of an instruction that some processors get wrong (Cortex-A53:
  // errata 843419 and 835769), to the instruction itself and a jump back, outside all functions.
  bool is_moved_elsewhere(const Instruction& one) const {
    const Bytes there = image_.at(one.target);
    if (one.flow != Flow::kJump || there.size() < 2 * kWordBytes || table_.find(one.target)) {
      return false;
    }
    const auto word = load_le<uint32_t>(there.data());
    Instruction moved;
    Instruction back;
    return pc_form(word) == PcForm::kNone && decode_arm64(word, one.target, moved) &&
           moved.flow == Flow::kOn &&
           decode_arm64(load_le<uint32_t>(there.data() + kWordBytes), moved.end(), back) &&
           back.flow == Flow::kJump && back.target == one.end();
  }

  // Whether an instruction leaves the function, and whether this is known.
  Refusal judge(uint32_t index, uint32_t at, PartCode& code) const {
    const Instruction& one = code.instructions[at];
    const bool at_return = table_.at_return(table_.frames[index], one.address);
    switch (one.flow) {
      case Flow::kReturn:
        // On arm64 a register says where to, and some compilers do not describe how a function
        // ends.
        if (!at_return && !image_.is_arm64()) return Refusal::kUnevenReturn;
        code.exits.push_back({at, SledUse::kExit});
        return Refusal::kNone;
      case Flow::kJump:
      case Flow::kBranch:
      case Flow::kShortBranch: {
        // To its own beginning from a fragment, too: the stub there would see a call.
        if (is_inside(index, one.target)) {
          const bool to_entry = one.target == table_.frames[map_.parts()[index].function].begin;
          return to_entry ? Refusal::kLoopToEntry : Refusal::kNone;
        }
        if (image_.is_arm64() && is_moved_elsewhere(one)) return Refusal::kNone;
        if (!at_return) return Refusal::kJumpsOut;
        code.exits.push_back({at, SledUse::kTail});
        return Refusal::kNone;
      }
      case Flow::kIndirectJump:
        return judge_indirect(index, at, at_return, code);
      default:
        return Refusal::kNone;
    }
  }

  Refusal judge_indirect(uint32_t index, uint32_t at, bool at_return, PartCode& code) const {
    const Part& part = map_.parts()[map_.parts()[index].function];
    const JumpShape shape = jump_shape(image_.processor(), code.bytes, table_.frames[index].begin,
                                       code.instructions, at);
    if (shape == JumpShape::kDistance) {
      // With something on the stack, it cannot lead to the beginning either.
      const bool is_known =
          part.has_table || (image_.is_arm64() && !at_return &&
                             stays_by_arm64_table(code.bytes, code.instructions, at));
      return is_known ? Refusal::kNone : Refusal::kUnknownJump;
    }
    // Entries of arm64's tables are distances.
    const bool may_stay = part.has_targets || (part.has_table && !image_.is_arm64());
    if (!at_return) {
      return may_stay && shape != JumpShape::kSlot ? Refusal::kNone : Refusal::kUnknownJump;
    }
    // Where pointers to the middle of it exist, this is one of them, or a call of another function.
    if (may_stay && (shape == JumpShape::kEntry || shape == JumpShape::kUnknown)) {
      return Refusal::kUnknownJump;
    }
    code.exits.push_back({at, SledUse::kTail});
    return Refusal::kNone;
  }

  template <class T>
  static void append(std::vector<uint8_t>& out, const std::vector<T>& table) {
    const size_t at = out.size();
    out.resize(at + table.size() * sizeof(T));
    if (!table.empty()) std::memcpy(out.data() + at, table.data(), table.size() * sizeof(T));
  }

  std::vector<uint8_t> file() {
    while (stubs_.region.size() % 8 != 0) stubs_.region.push_back(0x90);
    std::sort(stubs_.sites.begin(), stubs_.sites.end(),
              [](const PlanSite& a, const PlanSite& b) { return a.address < b.address; });
    PlanHeader header{};
    std::memcpy(header.magic, kPlanMagic, sizeof kPlanMagic);
    header.build_id_bytes = static_cast<uint32_t>(image_.build_id().size());
    if (!image_.build_id().empty()) {
      std::memcpy(header.build_id, image_.build_id().data(), image_.build_id().size());
    }
    header.image_bytes = image_.image_bytes();
    header.region_bytes = static_cast<uint32_t>(stubs_.region.size());
    header.site_count = static_cast<uint32_t>(stubs_.sites.size());
    header.sled_count = static_cast<uint32_t>(stubs_.sleds.size());
    header.relative_count = static_cast<uint32_t>(stubs_.relatives.size());
    header.absolute_count = static_cast<uint32_t>(stubs_.absolutes.size());
    header.function_count = static_cast<uint32_t>(functions_.size());
    header.processor = static_cast<uint32_t>(image_.processor());
    for (const PlanFunction& one : functions_) header.code_bytes += one.bytes;
    std::vector<uint8_t> out(sizeof header);
    append(out, stubs_.region);
    append(out, stubs_.sites);
    append(out, stubs_.sleds);
    append(out, stubs_.relatives);
    append(out, stubs_.absolutes);
    append(out, functions_);
    constexpr size_t kChecksummed = offsetof(PlanHeader, build_id_bytes);
    std::memcpy(out.data(), &header, sizeof header);
    header.crc = crc32c(Bytes(out).subspan(kChecksummed));
    std::memcpy(out.data(), &header, sizeof header);
    return out;
  }

  const ElfImage& image_;
  const UnwindTable& table_;
  const CodeMap& map_;
  Stubs stubs_;
  std::vector<PlanFunction> functions_;
};

}  // namespace

Result<std::vector<uint8_t>> make_plan(Bytes file) {
  const Result<ElfImage> image = ElfImage::parse(file);
  if (!image.ok()) return image.error();
  const Result<UnwindTable> table = UnwindTable::read(*image);
  if (!table.ok()) return table.error();
  // Half of a jump's reach is for the code that it leads to.
  if (image->is_arm64() && !table->frames.empty() && table->frames.back().end > kArm64Reach / 2) {
    return Error{Code::kLimit, "its code is more than a jump of arm64 can reach"};
  }
  const Result<CodeMap> map = CodeMap::build(*image, *table);
  if (!map.ok()) return map.error();
  return Planner(*image, *table, *map).run();
}

}  // namespace collect::patch
