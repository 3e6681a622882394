#include "daemon/symbolize/lookup/dwarf_image.h"

#include <elf.h>

#include <cstring>
#include <string>
#include <utility>

namespace collect::symbolize {
namespace {

// A field of Mach-O holds 16 characters, so one name is cut there.
constexpr std::pair<std::string_view, const char*> kSections[] = {
    {"__debug_abbrev", ".debug_abbrev"},
    {"__debug_addr", ".debug_addr"},
    {"__debug_info", ".debug_info"},
    {"__debug_line", ".debug_line"},
    {"__debug_line_str", ".debug_line_str"},
    {"__debug_ranges", ".debug_ranges"},
    {"__debug_rnglists", ".debug_rnglists"},
    {"__debug_str", ".debug_str"},
    {"__debug_str_offs", ".debug_str_offsets"},
};
constexpr char kNamesSection[] = ".shstrtab";
constexpr uint64_t kHeaderRoom = 4096;  // for all that is no section's

}  // namespace

DwarfImage::DwarfImage(bool is_arm64, uint64_t section_bytes) : is_arm64_(is_arm64) {
  file_.reserve(section_bytes + kHeaderRoom);
  file_.resize(sizeof(Elf64_Ehdr));
}

MutableBytes DwarfImage::add(std::string_view mach_o_name, uint64_t bytes) {
  const char* elf_name = nullptr;
  for (const auto& [name, its_elf_name] : kSections) {
    if (name == mach_o_name) elf_name = its_elf_name;
  }
  if (elf_name == nullptr) return {};
  for (const Section& section : sections_) {
    if (section.name == elf_name) return {};
  }
  const uint64_t offset = file_.size();
  sections_.push_back({elf_name, offset, bytes});
  file_.resize(offset + bytes);
  return MutableBytes(file_).subspan(offset, bytes);
}

std::vector<uint8_t> DwarfImage::bytes() && {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> table(1);  // number 0 is none
  const auto describe = [&](const Section& section, uint32_t type) {
    Elf64_Shdr& entry = table.emplace_back();
    entry.sh_name = static_cast<uint32_t>(names.size());
    entry.sh_type = type;
    entry.sh_offset = section.offset;
    entry.sh_size = section.bytes;
    entry.sh_addralign = 1;
    names.append(section.name).push_back('\0');
  };
  for (const Section& section : sections_) describe(section, SHT_PROGBITS);
  describe({kNamesSection, file_.size(), names.size() + sizeof kNamesSection}, SHT_STRTAB);
  file_.insert(file_.end(), names.begin(), names.end());
  file_.resize((file_.size() + alignof(Elf64_Shdr) - 1) / alignof(Elf64_Shdr) *
               alignof(Elf64_Shdr));

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;  // nothing in it has to be relocated
  header.e_machine = is_arm64_ ? EM_AARCH64 : EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = file_.size();
  header.e_shnum = static_cast<uint16_t>(table.size());
  header.e_shstrndx = static_cast<uint16_t>(table.size() - 1);
  std::memcpy(file_.data(), &header, sizeof header);
  const auto* const entries = reinterpret_cast<const uint8_t*>(table.data());
  file_.insert(file_.end(), entries, entries + table.size() * sizeof(Elf64_Shdr));
  return std::move(file_);
}

}  // namespace collect::symbolize
