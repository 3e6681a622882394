#include "daemon/patch/planner/code_map.h"

#include <algorithm>

namespace collect::patch {
namespace {

constexpr uint32_t kLandingBytes = 4;  // endbr64
constexpr uint32_t kMaxBytesBefore =
    255;  // nops before an entry, of -fpatchable-function-entry=N,M

void sort_once(std::vector<uint32_t>& addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
}

bool starts_at(const std::vector<Instruction>& instructions, uint32_t address) {
  const auto found = std::lower_bound(
      instructions.begin(), instructions.end(), address,
      [](const Instruction& one, uint32_t wanted) { return one.address < wanted; });
  return found != instructions.end() && found->address == address;
}

int64_t entry_of(const uint8_t* entry, const JumpTable& table) {
  if (table.entry_bytes == 1) return table.is_signed ? static_cast<int8_t>(*entry) : *entry;
  if (table.entry_bytes == 2) {
    const auto value = load_le<uint16_t>(entry);
    return table.is_signed ? static_cast<int16_t>(value) : value;
  }
  const auto value = load_le<uint32_t>(entry);
  return table.is_signed ? static_cast<int32_t>(value) : int64_t{value};
}

}  // namespace

Result<CodeMap> CodeMap::build(const ElfImage& image, const UnwindTable& table) {
  CodeMap map(image, table);
  map.parts_.resize(table.frames.size());
  for (const uint32_t pointer : image.code_pointers()) map.refer_to(pointer);
  for (const uint32_t entry : image.listed_entries()) map.note_entry(entry);
  for (size_t i = 0; i < table.frames.size(); ++i) {
    map.parts_[i].function = static_cast<uint32_t>(i);
    map.look_at(i);
    map.find_landing_pads(i);
    if (map.targets_.size() > kMaxTargets) {
      return Error{Code::kLimit, "it has too many jumps"};
    }
  }
  map.read_tables();
  map.find_fragments();
  map.join_fragments();
  sort_once(map.targets_);
  return map;
}

bool CodeMap::is_target(uint32_t address) const {
  return std::binary_search(targets_.begin(), targets_.end(), address);
}

// Procedure linkage tables are one frame with many slots, of which none is a function.
bool CodeMap::is_linkage(const std::vector<Instruction>& instructions) const {
  bool has_slot = false;
  for (const Instruction& one : instructions) {
    const bool is_slot = one.flow == Flow::kIndirectJump && one.distance_at != 0;
    const bool is_push =
        one.flow == Flow::kOn && ((one.distance_at == 2 && one.length == 6) || one.length == 5);
    const bool leads_on = one.flow == Flow::kJump || one.is_filling() || one.is_landing;
    if (!is_slot && !is_push && !leads_on) return false;
    has_slot = has_slot || is_slot;
  }
  return has_slot;
}

void CodeMap::look_at(size_t index) {
  const Frame& frame = table_->frames[index];
  std::vector<Instruction> instructions;
  const bool whole = decode_all(image_->processor(), code(frame), frame.begin, instructions);
  for (const Instruction& one : instructions) look_at(index, one);
  if (frame.begin <= image_->entry() && image_->entry() < frame.end) refuse(index, Refusal::kStart);
  if (is_linkage(instructions)) {
    refuse(index, Refusal::kLinkage);
  } else if (std::binary_search(table_->personalities.begin(), table_->personalities.end(),
                                uint64_t{frame.begin})) {
    refuse(index, Refusal::kPersonality);
  } else if (frame.is_signal) {
    refuse(index, Refusal::kSignalFrame);
  } else if (!frame.is_understood) {
    refuse(index, Refusal::kUnwindUnknown);
  } else if (!whole) {
    refuse(index, Refusal::kUndecodable);
  }
  for (const Instruction& one : instructions) {
    const bool stays = one.target >= frame.begin && one.target < frame.end;
    const bool jumps =
        one.flow == Flow::kJump || one.flow == Flow::kBranch || one.flow == Flow::kShortBranch;
    if (jumps && stays && !starts_at(instructions, one.target))
      refuse(index, Refusal::kUndecodable);
    // Constants among the code look like instructions.
    if (one.reads_target && stays) refuse(index, Refusal::kUndecodable);
  }
  if (image_->is_arm64()) find_tables(index, instructions);
}

void CodeMap::find_tables(size_t index, const std::vector<Instruction>& instructions) {
  JumpTable table;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].flow == Flow::kIndirectJump &&
        find_arm64_table(code(table_->frames[index]), instructions, i, table)) {
      tables_.push_back({static_cast<uint32_t>(index), table});
    }
  }
}

void CodeMap::look_at(size_t index, const Instruction& one) {
  switch (one.flow) {
    case Flow::kJump:
    case Flow::kBranch:
    case Flow::kShortBranch: {
      const Frame* to = table_->find(one.target);
      targets_.push_back(one.target);
      if (to != nullptr && index_of(*to) != index) {
        jumps_.push_back({static_cast<uint32_t>(index), static_cast<uint32_t>(index_of(*to)),
                          one.target != to->begin});
      }
      break;
    }
    case Flow::kCall: {
      const Frame* to = table_->find(one.target);
      if (to != nullptr && one.target == to->begin) {
        parts_[index_of(*to)].is_called = true;
      } else {
        targets_.push_back(one.target);
        if (to != nullptr) refuse(index_of(*to), Refusal::kEnteredInside);
      }
      targets_.push_back(one.end());
      break;
    }
    case Flow::kIndirectCall:
      targets_.push_back(one.end());
      break;
    default:
      break;
  }
  if (one.takes_address) {
    refer_to(one.target);
    // Some linkers put constants into the segment of the code.
    if (!image_->is_arm64() && table_->find(one.target) == nullptr) {
      tables_.push_back({static_cast<uint32_t>(index), {one.target, one.target}});
    }
  }
  // Elsewhere an address is never an operand.
  if (one.value != 0 && !image_->is_position_independent()) refer_to(one.value);
}

void CodeMap::refer_to(uint32_t address) {
  if (!image_->is_code(address)) return;
  targets_.push_back(address);
  const Frame* to = table_->find(address);
  if (to == nullptr) return;
  Part& part = parts_[index_of(*to)];
  if (address == to->begin) {
    part.is_called = true;
  } else {
    part.has_targets = true;
  }
}

// Parts of functions are not listed, so this is a function, called or not. The listed place is its
// first instruction, the one behind endbr64, or nops before it.
void CodeMap::note_entry(uint32_t address) {
  const auto next =
      std::upper_bound(table_->frames.begin(), table_->frames.end(), address,
                       [](uint32_t wanted, const Frame& frame) { return wanted < frame.begin; });
  const bool is_inside = next != table_->frames.begin() && address < (next - 1)->end;
  const auto frame = is_inside ? next - 1 : next;
  if (frame == table_->frames.end()) return;
  const uint32_t away = is_inside ? address - frame->begin : frame->begin - address;
  if (away > (is_inside ? kLandingBytes : kMaxBytesBefore)) return;
  parts_[index_of(*frame)].is_called = true;
}

void CodeMap::find_landing_pads(size_t index) {
  const Frame& frame = table_->frames[index];
  for (uint32_t i = 0; i < frame.pad_count; ++i) {
    const uint32_t pad = table_->landing_pads[frame.first_pad + i];
    targets_.push_back(pad);
    const Frame* to = table_->find(pad);
    if (to == nullptr || index_of(*to) == index) continue;
    jumps_.push_back({static_cast<uint32_t>(index), static_cast<uint32_t>(index_of(*to)), true});
  }
}

// Distances, of x86-64 of 32 bits from the table itself, as long as they lead into the function
// that has its address, or to what may be a part of that.
void CodeMap::read_table(const Table& found, const std::vector<Instruction>& instructions) {
  const JumpTable& table = found.table;
  const Bytes bytes = image_->at(table.address);
  const Frame& own = table_->frames[found.frame];
  const size_t count = table.count != 0 ? table.count : kMaxTableEntries;
  for (size_t i = 0; i < count && (i + 1) * table.entry_bytes <= bytes.size(); ++i) {
    const int64_t distance = entry_of(bytes.data() + i * table.entry_bytes, table);
    const uint32_t to = table.base + static_cast<uint32_t>(distance * (int64_t{1} << table.shift));
    if (to >= own.begin && to < own.end) {
      if (!starts_at(instructions, to)) return;
      if (to == own.begin) refuse(found.frame, Refusal::kLoopToEntry);
    } else {
      // A number of instructions: assemblers count them within a section, so it is no entry.
      if (table.shift != 0) return;
      const Frame* other = table_->find(to);
      // From a part that no one calls, an entry may also lead back to the function itself.
      const bool is_possible = other != nullptr && (!parts_[index_of(*other)].is_called ||
                                                    !parts_[found.frame].is_called);
      if (!is_possible) return;
      jumps_.push_back({found.frame, static_cast<uint32_t>(index_of(*other)), true});
    }
    targets_.push_back(to);
    parts_[found.frame].has_table = true;
  }
}

void CodeMap::read_tables() {
  std::vector<Instruction> instructions;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (i == 0 || tables_[i].frame != tables_[i - 1].frame) {
      const Frame& frame = table_->frames[tables_[i].frame];
      instructions.clear();
      (void)decode_all(image_->processor(), code(frame), frame.begin, instructions);
    }
    read_table(tables_[i], instructions);
    if (targets_.size() > kMaxTargets) return;  // build() has looked at the bound before
  }
}

// A frame that no one calls and that is entered, or left, in the middle of things.
void CodeMap::find_fragments() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Frame& frame = table_->frames[i];
    parts_[i].is_fragment = frame.is_understood && !table_->at_return(frame, frame.begin) &&
                            parts_[i].refusal != Refusal::kLinkage;
  }
  for (const Jump& jump : jumps_) {
    Part& from = parts_[jump.from];
    const Part& to = parts_[jump.to];
    if (jump.inside && !from.is_called && !to.is_fragment && to.refusal != Refusal::kLinkage) {
      from.is_fragment = true;
    }
  }
}

uint32_t CodeMap::root_of(uint32_t index) {
  while (parts_[index].function != index) {
    parts_[index].function = parts_[parts_[index].function].function;
    index = parts_[index].function;
  }
  return index;
}

void CodeMap::join_fragments() {
  for (const Jump& jump : jumps_) {
    Part& from = parts_[jump.from];
    Part& to = parts_[jump.to];
    if (!from.is_fragment && !to.is_fragment) {
      if (!jump.inside || from.refusal == Refusal::kLinkage || to.refusal == Refusal::kLinkage) {
        continue;
      }
      refuse(jump.from, Refusal::kJumpsOut);
      refuse(jump.to, Refusal::kEnteredInside);
      continue;
    }
    // A fragment that ends by a tail call is no part of what it calls.
    if (from.is_fragment && !to.is_fragment && !jump.inside) continue;
    const uint32_t one = root_of(jump.from);
    const uint32_t other = root_of(jump.to);
    if (one == other) continue;
    if (!parts_[one].is_fragment && !parts_[other].is_fragment) {
      refuse(one, Refusal::kSharedPart);
      refuse(other, Refusal::kSharedPart);
      continue;
    }
    const uint32_t root = parts_[one].is_fragment ? other : one;
    parts_[root == one ? other : one].function = root;
  }
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const uint32_t root = root_of(i);
    parts_[i].function = root;
    if (parts_[i].refusal != Refusal::kNone) refuse(root, parts_[i].refusal);
    if (parts_[i].has_targets) parts_[root].has_targets = true;
    if (parts_[i].has_table) parts_[root].has_table = true;
  }
}

}  // namespace collect::patch
