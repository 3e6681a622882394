#include "daemon/patch/planner/unwind_table.h"

#include <algorithm>
#include <string>

#include "daemon/patch/planner/dwarf_reader.h"

namespace collect::patch {
namespace {

constexpr uint64_t kX86Stack = 7;       // DWARF's number of rsp
constexpr uint64_t kArm64Stack = 31;    // of sp
constexpr uint8_t kSortedTable = 0x3B;  // data-relative, signed, 32 bits: what linkers write
constexpr size_t kMaxRemembered = 16;
constexpr size_t kMaxPersonalities = 64;  // languages of one module

Error damaged(const std::string& what) {
  return {Code::kDamaged, "its unwind information is damaged: " + what};
}

struct CfaRule {
  uint64_t reg = 0;
  int64_t offset = 0;
  bool is_known = true;  // no expression
  bool is(uint64_t wanted, int64_t away) const {
    return is_known && reg == wanted && offset == away;
  }
};

struct Cie {
  uint64_t code_factor = 0;
  int64_t data_factor = 0;
  uint8_t pointer_form = 0;
  uint8_t lsda_form = kOmitted;
  uint64_t personality = 0;  // or the word that has its address
  bool is_indirect = false;
  bool is_signal = false;
  bool has_data = false;  // of augmentation, in its FDEs
  Bytes instructions;
};

bool read_augmentation(DwarfReader& reader, const char* text, Cie& cie) {
  for (const char* letter = text + 1; *letter != '\0'; ++letter) {
    switch (*letter) {
      case 'R':
        cie.pointer_form = reader.u8();
        break;
      case 'L':
        cie.lsda_form = reader.u8();
        break;
      case 'P': {
        const uint8_t form = reader.u8();
        cie.is_indirect = (form & 0x80) != 0;
        cie.personality = reader.pointer(form & 0x7F, 0);
        break;
      }
      case 'S':
        cie.is_signal = true;
        break;
      case 'B':  // arm64: return addresses are signed with the other key
        break;
      default:
        return false;
    }
  }
  return reader.ok();
}

// Reads an entry of .eh_frame without its length. False: not understood.
bool read_cie(Bytes bytes, uint64_t address, Cie& cie) {
  DwarfReader reader(bytes, address);
  (void)reader.take<uint32_t>();
  const uint8_t version = reader.u8();
  char text[8] = {};
  for (char& letter : text) {
    letter = static_cast<char>(reader.u8());
    if (letter == '\0') break;
  }
  if (text[sizeof text - 1] != '\0' || (version != 1 && version != 3)) return false;
  cie.code_factor = reader.unsigned_leb();
  cie.data_factor = reader.signed_leb();
  (void)(version == 1 ? reader.u8() : reader.unsigned_leb());
  if (text[0] == 'z') {
    cie.has_data = true;
    const uint64_t bytes_of_data = reader.unsigned_leb();
    const uint64_t end = reader.address() + bytes_of_data;
    if (!read_augmentation(reader, text, cie) || reader.address() > end) return false;
    reader.skip(end - reader.address());
  } else if (text[0] != '\0') {
    return false;
  }
  if (!reader.ok()) return false;
  cie.instructions = reader.rest();
  return true;
}

// Runs the instructions of one frame, as far as they say where the canonical frame address is.
class CfaProgram {
 public:
  CfaProgram(const Cie& cie, bool is_arm64, uint64_t begin, std::vector<UnwindRow>& rows)
      : cie_(cie), is_arm64_(is_arm64), address_(begin), rows_(rows) {}

  bool run(Bytes initial, Bytes own) {
    if (!run(initial)) return false;
    emit();
    if (!run(own)) return false;
    emit();
    return true;
  }

 private:
  void emit() {
    // As at the call: on x86-64, that has pushed the return address.
    const bool at_return = is_arm64_ ? rule_.is(kArm64Stack, 0) : rule_.is(kX86Stack, 8);
    const UnwindRow row{static_cast<uint32_t>(address_), at_return};
    if (rows_.empty() || !has_row_) {
      rows_.push_back(row);
      has_row_ = true;
    } else if (rows_.back().address == row.address) {
      rows_.back() = row;
    } else if (rows_.back().at_return != row.at_return) {
      rows_.push_back(row);
    }
  }
  void advance(uint64_t delta) {
    if (has_row_) emit();
    address_ += delta * cie_.code_factor;
  }

  bool run(Bytes instructions) {
    DwarfReader reader(instructions, 0);
    while (reader.ok() && !reader.at_end()) {
      const uint8_t code = reader.u8();
      if (!(code >= 0x40 ? packed(code, reader) : plain(code, reader))) return false;
      if (address_ > kMaxImageAddress) return false;
    }
    return reader.ok();
  }

  bool packed(uint8_t code, DwarfReader& reader) {
    if ((code & 0xC0) == 0x40) advance(code & 0x3F);
    if ((code & 0xC0) == 0x80) (void)reader.unsigned_leb();  // offset of a register
    return true;                                             // 0xC0: restore
  }

  bool plain(uint8_t code, DwarfReader& reader) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x02:
        advance(reader.u8());
        return true;
      case 0x03:
        advance(reader.take<uint16_t>());
        return true;
      case 0x04:
        advance(reader.take<uint32_t>());
        return true;
      case 0x05:  // offset_extended
      case 0x09:  // register
      case 0x11:  // offset_extended_sf
      case 0x14:  // val_offset
      case 0x15:  // val_offset_sf
      case 0x2F:  // GNU_negative_offset_extended
        (void)reader.unsigned_leb();
        (void)reader.unsigned_leb();
        return true;
      case 0x06:  // restore_extended
      case 0x07:  // undefined
      case 0x08:  // same_value
      case 0x2E:  // GNU_args_size
        (void)reader.unsigned_leb();
        return true;
      case 0x10:  // expression
      case 0x16:  // val_expression
        (void)reader.unsigned_leb();
        reader.skip(reader.unsigned_leb());
        return true;
      case 0x2D:  // AARCH64_negate_ra_state: from here on the return address is signed, or no more
        return is_arm64_;
      default:
        return of_cfa(code, reader);
    }
  }

  bool of_cfa(uint8_t code, DwarfReader& reader) {
    switch (code) {
      case 0x0A:  // remember_state
        if (remembered_.size() == kMaxRemembered) return false;
        remembered_.push_back(rule_);
        return true;
      case 0x0B:  // restore_state
        if (remembered_.empty()) return false;
        rule_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0C:  // def_cfa
        rule_.reg = reader.unsigned_leb();
        rule_.offset = static_cast<int64_t>(reader.unsigned_leb());
        rule_.is_known = true;
        return true;
      case 0x12:  // def_cfa_sf
        rule_.reg = reader.unsigned_leb();
        rule_.offset = reader.signed_leb() * cie_.data_factor;
        rule_.is_known = true;
        return true;
      case 0x0D:  // def_cfa_register
        rule_.reg = reader.unsigned_leb();
        return true;
      case 0x0E:  // def_cfa_offset
        rule_.offset = static_cast<int64_t>(reader.unsigned_leb());
        return true;
      case 0x13:  // def_cfa_offset_sf
        rule_.offset = reader.signed_leb() * cie_.data_factor;
        return true;
      case 0x0F:  // def_cfa_expression
        reader.skip(reader.unsigned_leb());
        rule_.is_known = false;
        return true;
      default:  // set_loc, which no compiler writes here, and what is unknown
        return false;
    }
  }

  static constexpr uint64_t kMaxImageAddress = uint64_t{1} << 31;

  const Cie& cie_;
  const bool is_arm64_;
  uint64_t address_;
  std::vector<UnwindRow>& rows_;
  bool has_row_ = false;
  CfaRule rule_;
  std::vector<CfaRule> remembered_;
};

// The call sites of a function: where exceptions may lead.
bool read_landing_pads(const ElfImage& image, uint64_t table, const Frame& frame,
                       std::vector<uint32_t>& pads) {
  DwarfReader reader(image, table);
  const uint8_t start_form = reader.u8();
  const uint64_t start = start_form == kOmitted ? frame.begin : reader.pointer(start_form, 0);
  const uint8_t type_form = reader.u8();
  if (type_form != kOmitted) (void)reader.unsigned_leb();
  const uint8_t form = reader.u8();
  const uint64_t bytes = reader.unsigned_leb();
  const uint64_t end = reader.address() + bytes;
  while (reader.ok() && reader.address() < end) {
    (void)reader.raw(form);
    (void)reader.raw(form);
    const uint64_t pad = reader.raw(form);
    (void)reader.unsigned_leb();
    if (!reader.ok() || pads.size() == kMaxLandingPads) return false;
    if (pad != 0 && image.is_code(start + pad)) pads.push_back(static_cast<uint32_t>(start + pad));
  }
  return reader.ok();
}

// The entry of .eh_frame at `address`, without its length.
Bytes entry_at(const ElfImage& image, uint64_t address) {
  const Bytes bytes = image.at(address);
  if (bytes.size() < 8) return {};
  const auto length = load_le<uint32_t>(bytes.data());
  if (length < 4 || length > bytes.size() - 4) return {};  // also the 64-bit form
  return bytes.subspan(4, length);
}

// False: not even its bounds.
bool read_frame(const ElfImage& image, uint64_t address, UnwindTable& table,
                std::vector<uint64_t>& slots, Frame& frame) {
  const Bytes bytes = entry_at(image, address);
  if (bytes.empty()) return false;
  DwarfReader reader(bytes, address + 4);
  const auto back = reader.take<uint32_t>();
  const uint64_t cie_address = address + 4 - back;
  const Bytes cie_bytes = back == 0 ? Bytes() : entry_at(image, cie_address);
  Cie cie;
  if (cie_bytes.empty() || !read_cie(cie_bytes, cie_address + 4, cie)) return false;
  const uint64_t begin = reader.pointer(cie.pointer_form, 0);
  const uint64_t size = reader.raw(cie.pointer_form);
  if (!reader.ok() || size == 0 || !image.is_code(begin) || size > image.at(begin).size()) {
    return false;
  }
  frame.begin = static_cast<uint32_t>(begin);
  frame.end = static_cast<uint32_t>(begin + size);
  frame.is_signal = cie.is_signal;
  uint64_t lsda = 0;
  if (cie.has_data) {
    const uint64_t bytes_of_data = reader.unsigned_leb();
    const uint64_t end = reader.address() + bytes_of_data;
    if (cie.lsda_form != kOmitted) lsda = reader.pointer(cie.lsda_form, 0);
    if (!reader.ok() || reader.address() > end) return false;
    reader.skip(end - reader.address());
  }
  if (cie.personality != 0) {
    // A module has few of them: they are looked up when all are known.
    auto& found = cie.is_indirect ? slots : table.personalities;
    if (std::find(found.begin(), found.end(), cie.personality) == found.end() &&
        found.size() < kMaxPersonalities) {
      found.push_back(cie.personality);
    }
  }
  frame.first_row = static_cast<uint32_t>(table.rows.size());
  frame.first_pad = static_cast<uint32_t>(table.landing_pads.size());
  CfaProgram program(cie, image.is_arm64(), begin, table.rows);
  frame.is_understood = reader.ok() && program.run(cie.instructions, reader.rest()) &&
                        (lsda == 0 || read_landing_pads(image, lsda, frame, table.landing_pads));
  frame.row_count = static_cast<uint32_t>(table.rows.size()) - frame.first_row;
  frame.pad_count = static_cast<uint32_t>(table.landing_pads.size()) - frame.first_pad;
  return true;
}

}  // namespace

Result<UnwindTable> UnwindTable::read(const ElfImage& image) {
  if (image.frame_header() == 0) {
    return Error{Code::kUnsupported, "it has no .eh_frame_hdr, which says where functions begin"};
  }
  DwarfReader header(image, image.frame_header());
  const uint8_t version = header.u8();
  const uint8_t frame_form = header.u8();
  const uint8_t count_form = header.u8();
  const uint8_t table_form = header.u8();
  (void)header.pointer(frame_form, image.frame_header());
  const uint64_t count = header.raw(count_form);
  if (!header.ok() || version != 1 || table_form != kSortedTable || count_form == kOmitted) {
    return Error{Code::kUnsupported, "its .eh_frame_hdr has no sorted table"};
  }
  if (count > kMaxFrames) return Error{Code::kLimit, "it has too many functions"};
  UnwindTable table;
  std::vector<uint64_t> slots;  // words with personalities
  for (uint64_t i = 0; i < count; ++i) {
    (void)header.pointer(table_form, image.frame_header());
    const uint64_t address = header.pointer(table_form, image.frame_header());
    if (!header.ok()) return damaged("its table ends too early");
    Frame frame;
    if (!read_frame(image, address, table, slots, frame)) continue;
    if (!table.frames.empty() && frame.begin < table.frames.back().end) {
      if (frame.begin < table.frames.back().begin) return damaged("its table is not sorted");
      table.frames.back().is_understood = false;  // two say different things of the same code
      continue;
    }
    table.frames.push_back(frame);
    if (table.rows.size() > kMaxRows) return Error{Code::kLimit, "its unwind table is too large"};
  }
  for (const uint64_t slot : slots) table.personalities.push_back(image.pointer_in(slot));
  std::sort(table.personalities.begin(), table.personalities.end());
  return table;
}

bool UnwindTable::at_return(const Frame& frame, uint32_t address) const {
  const auto begin = rows.begin() + frame.first_row;
  const auto end = begin + frame.row_count;
  const auto after = std::upper_bound(
      begin, end, address, [](uint32_t at, const UnwindRow& row) { return at < row.address; });
  return after != begin && std::prev(after)->at_return;
}

const Frame* UnwindTable::find(uint32_t address) const {
  const auto after =
      std::upper_bound(frames.begin(), frames.end(), address,
                       [](uint32_t at, const Frame& frame) { return at < frame.begin; });
  if (after == frames.begin()) return nullptr;
  const Frame& frame = *std::prev(after);
  return address < frame.end ? &frame : nullptr;
}

}  // namespace collect::patch
