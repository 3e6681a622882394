// Symbol tables and DWARF of Mach-O files: of apps of iOS and macOS, and of their dSYMs.
#include <fmt/core.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/dwarf_image.h"
#include "daemon/symbolize/lookup/mach_o.h"
#include "daemon/symbolize/lookup/symbol_file.h"
#include "formats/core/bytes.h"

namespace collect::symbolize {
namespace {

constexpr std::string_view kHeaderSymbol = "__mh_";  // of the image's own header, which is no code
constexpr std::string_view kDwarfSegment = "__DWARF";
constexpr std::string_view kLineTable = "__debug_line";

template <class Value>
Value big_endian(const uint8_t* bytes) {
  Value value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value = static_cast<Value>(value << 8 | bytes[i]);
  return value;
}

std::string_view text_of(const char (&field)[16]) {
  return {field, strnlen(field, sizeof field)};
}

// Where an image is in its file.
struct Slice {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class MachOSymbols final : public SymbolFile {
 public:
  MachOSymbols(std::string path, int fd) : SymbolFile(std::move(path), fd) {}
  ~MachOSymbols() override {
    if (elf_ != nullptr) elf_end(elf_);
  }
  Status read_structure(const std::vector<uint8_t>& build_id);
  Status load() override;
  Elf* debug_elf() override;

 private:
  std::string_view name_at(uint32_t name) const override;
  Error fault(Code code, const std::string& what) const {
    return {code, fmt::format("{}: {}", path_, what)};
  }
  Status read_into(uint64_t offset, MutableBytes out) const;
  Result<std::vector<uint8_t>> read(uint64_t offset, uint64_t bytes) const;
  Result<std::vector<Slice>> slices() const;
  Status read_image(Slice slice);
  Status read_segment(Bytes command);

  Slice image_;
  uint32_t cpu_type_ = 0;
  std::optional<SymtabCommand> symtab_;
  std::vector<MachSection> sections_;
  std::vector<uint8_t> strings_;
  std::vector<uint8_t> debug_;  // what elf_ reads
  Elf* elf_ = nullptr;
};

// Reads from the image.
Status MachOSymbols::read_into(uint64_t offset, MutableBytes out) const {
  if (offset > image_.bytes || out.size() > image_.bytes - offset) {
    return fault(Code::kTruncated, "it ends too early");
  }
  for (size_t at = 0; at < out.size();) {
    const ssize_t got = ::pread(fd_, out.data() + at, out.size() - at,
                                static_cast<off_t>(image_.offset + offset + at));
    if (got <= 0) return fault(Code::kTruncated, "it ends too early");
    at += static_cast<size_t>(got);
  }
  return {};
}

Result<std::vector<uint8_t>> MachOSymbols::read(uint64_t offset, uint64_t bytes) const {
  if (bytes > image_.bytes) return fault(Code::kTruncated, "it ends too early");
  std::vector<uint8_t> out(bytes);
  COLLECT_TRY(read_into(offset, out));
  return out;
}

Result<std::vector<Slice>> MachOSymbols::slices() const {
  const auto head = read(0, sizeof(uint64_t));
  if (!head.ok()) return head.error();
  if (load_le<uint32_t>(head->data()) == kMachMagic64) return std::vector<Slice>{image_};
  const auto magic = big_endian<uint32_t>(head->data());
  const auto count = big_endian<uint32_t>(head->data() + 4);
  if ((magic != kFatMagic && magic != kFatMagic64) || count == 0 || count > kMaxArchitectures) {
    return fault(Code::kDamaged, "neither an ELF nor a 64-bit Mach-O file");
  }
  const bool is_64 = magic == kFatMagic64;
  const uint64_t entry_bytes = is_64 ? 32 : 20;
  const auto entries = read(8, count * entry_bytes);
  if (!entries.ok()) return entries.error();
  std::vector<Slice> all;
  for (uint64_t at = 0; at < entries->size(); at += entry_bytes) {
    const uint8_t* const place = entries->data() + at + 8;  // behind the processor
    const Slice slice = is_64 ? Slice{big_endian<uint64_t>(place), big_endian<uint64_t>(place + 8)}
                              : Slice{big_endian<uint32_t>(place), big_endian<uint32_t>(place + 4)};
    if (slice.offset <= image_.bytes && slice.bytes <= image_.bytes - slice.offset) {
      all.push_back(slice);
    }
  }
  return all;
}

Status MachOSymbols::read_structure(const std::vector<uint8_t>& build_id) {
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  image_ = {0, end > 0 ? static_cast<uint64_t>(end) : 0};
  const auto found = slices();
  if (!found.ok()) return found.error();
  Status first = fault(Code::kDamaged, "no image of an architecture is in it");
  std::optional<Slice> readable;
  for (const Slice& slice : *found) {
    const Status read = read_image(slice);
    if (read.ok() && build_id_ == build_id) return {};
    if (read.ok() && !readable) readable = slice;
    if (!read.ok() && !readable) first = read;
  }
  return readable ? read_image(*readable) : first;
}

Status MachOSymbols::read_image(Slice slice) {
  image_ = slice;
  build_id_.clear();
  sections_.clear();
  symtab_.reset();
  image_bytes_ = 0;
  debug_base_ = std::numeric_limits<uint64_t>::max();
  has_lines_ = false;
  const auto head = read(0, sizeof(MachHeader));
  if (!head.ok()) return head.error();
  MachHeader header;
  std::memcpy(&header, head->data(), sizeof header);
  if (header.magic != kMachMagic64) return fault(Code::kDamaged, "not a 64-bit Mach-O image");
  if (header.command_bytes > kMaxLoadCommandBytes) {
    return fault(Code::kLimit, fmt::format("{} bytes of load commands", header.command_bytes));
  }
  cpu_type_ = header.cpu_type;
  const auto commands = read(sizeof header, header.command_bytes);
  if (!commands.ok()) return commands.error();
  uint64_t at = 0;
  for (uint32_t i = 0; i < header.commands; ++i) {
    LoadCommand command;
    if (commands->size() - at < sizeof command) break;
    std::memcpy(&command, commands->data() + at, sizeof command);
    if (command.bytes < sizeof command || command.bytes > commands->size() - at) break;
    const Bytes bytes = Bytes(*commands).subspan(at, command.bytes);
    if (command.command == kCommandUuid && bytes.size() >= sizeof command + kUuidBytes) {
      const Bytes uuid = bytes.subspan(sizeof command, kUuidBytes);
      build_id_.assign(uuid.begin(), uuid.end());
    } else if (command.command == kCommandSymtab && bytes.size() >= sizeof(SymtabCommand)) {
      std::memcpy(&symtab_.emplace(), bytes.data(), sizeof(SymtabCommand));
    } else if (command.command == kCommandSegment64) {
      COLLECT_TRY(read_segment(bytes));
    }
    at += command.bytes;
  }
  has_symtab_ = symtab_ && symtab_->symbols != 0;
  if (image_bytes_ == 0) return fault(Code::kDamaged, "no segment of it is code");
  return {};
}

// An image begins, for the agent as here, with the first of its segments that are executed.
Status MachOSymbols::read_segment(Bytes command) {
  SegmentCommand segment;
  if (command.size() < sizeof segment) return fault(Code::kDamaged, "a short segment command");
  std::memcpy(&segment, command.data(), sizeof segment);
  if (segment.sections > (command.size() - sizeof segment) / sizeof(MachSection)) {
    return fault(Code::kDamaged, "a segment with more sections than its command has");
  }
  if ((segment.protection & kProtectionExecute) != 0 && segment.memory_bytes != 0) {
    const uint64_t end = std::max(image_bytes_ == 0 ? 0 : debug_base_ + image_bytes_,
                                  segment.address + segment.memory_bytes);
    debug_base_ = std::min(debug_base_, segment.address);
    image_bytes_ = end - debug_base_;
  }
  for (uint32_t i = 0; i < segment.sections; ++i) {
    MachSection& section = sections_.emplace_back();
    std::memcpy(&section, command.data() + sizeof segment + i * sizeof section, sizeof section);
    if (text_of(section.segment) == kDwarfSegment && text_of(section.name) == kLineTable &&
        section.bytes != 0) {
      has_lines_ = true;
    }
  }
  return {};
}

Status MachOSymbols::load() {
  if (!has_symtab_) return fault(Code::kNotFound, "no symbol table");
  if (symtab_->strings_bytes > kMaxSymbolTableBytes) {
    return fault(Code::kLimit, fmt::format("symbol names of {} bytes", symtab_->strings_bytes));
  }
  const uint64_t count = std::min<uint64_t>(symtab_->symbols, kMaxSymbols);
  const auto table = read(symtab_->symbols_offset, count * sizeof(MachSymbol));
  if (!table.ok()) return table.error();
  auto strings = read(symtab_->strings_offset, symtab_->strings_bytes);
  if (!strings.ok()) return strings.error();
  strings_ = std::move(*strings);
  for (uint64_t at = 0; at < table->size(); at += sizeof(MachSymbol)) {
    MachSymbol symbol;
    std::memcpy(&symbol, table->data() + at, sizeof symbol);
    if ((symbol.type & kSymbolDebug) != 0 || (symbol.type & kSymbolKind) != kSymbolInSection ||
        symbol.section == 0 || symbol.section > sections_.size()) {
      continue;
    }
    const MachSection& section = sections_[symbol.section - 1u];
    if ((section.flags & kSectionOfInstructions) == 0 || symbol.address < section.address ||
        symbol.address - section.address >= section.bytes || symbol.address < debug_base_ ||
        name_at(symbol.name).starts_with(kHeaderSymbol)) {
      continue;
    }
    const bool is_public =
        (symbol.type & kSymbolExternal) != 0 && (symbol.type & kSymbolPrivate) == 0;
    const uint32_t rank = !is_public ? 2 : (symbol.description & kSymbolWeak) != 0 ? 1 : 0;
    const uint64_t left = section.bytes - (symbol.address - section.address);
    entries_.push_back({symbol.address - debug_base_, left, rank, symbol.name});
  }
  sort_entries();
  // A symbol has no size of its own: it continues to the next one, or to the end of its section.
  uint64_t next = std::numeric_limits<uint64_t>::max();
  for (size_t i = entries_.size(); i-- > 0;) {
    if (i + 1 < entries_.size() && entries_[i + 1].value != entries_[i].value) {
      next = entries_[i + 1].value;
    }
    entries_[i].size = std::min(entries_[i].size, next - entries_[i].value);
  }
  return {};
}

// Without the underscore that names of C and C++ begin with there.
std::string_view MachOSymbols::name_at(uint32_t name) const {
  if (name >= strings_.size()) return {};
  const auto* text = reinterpret_cast<const char*>(strings_.data()) + name;
  std::string_view found(text,
                         strnlen(text, std::min(strings_.size() - name, kMaxMangledBytes + 1)));
  if (found.starts_with('_')) found.remove_prefix(1);
  return found;
}

Elf* MachOSymbols::debug_elf() {
  if (!has_lines_ || elf_ != nullptr) return elf_;
  uint64_t bytes = 0;
  for (const MachSection& section : sections_) {
    if (text_of(section.segment) != kDwarfSegment) continue;
    if (section.bytes > kMaxDebugBytes - bytes) return nullptr;
    bytes += section.bytes;
  }
  DwarfImage image(cpu_type_ == kCpuArm64, bytes);
  for (const MachSection& section : sections_) {
    if (text_of(section.segment) != kDwarfSegment) continue;
    const MutableBytes contents = image.add(text_of(section.name), section.bytes);
    if (!read_into(section.file_offset, contents).ok()) return nullptr;
  }
  debug_ = std::move(image).bytes();
  elf_version(EV_CURRENT);
  elf_ = elf_memory(reinterpret_cast<char*>(debug_.data()), debug_.size());
  return elf_;
}

}  // namespace

Result<std::unique_ptr<SymbolFile>> open_mach_o(int fd, std::string path,
                                                const std::vector<uint8_t>& build_id) {
  auto file = std::make_unique<MachOSymbols>(std::move(path), fd);
  COLLECT_TRY(file->read_structure(build_id));
  return std::unique_ptr<SymbolFile>(std::move(file));
}

}  // namespace collect::symbolize
