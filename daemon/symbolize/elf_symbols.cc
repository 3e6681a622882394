// Symbol tables of ELF files, by libelf.
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/symbol_file.h"

namespace collect::symbolize {
namespace {

Error elf_error(const std::string& path, const char* what) {
  const char* why = elf_errmsg(-1);
  return {Code::kDamaged, path + ": " + what + ": " + (why != nullptr ? why : "not usable")};
}

// Global names before weak before local ones: the public one is what a reader looks for.
uint32_t rank_of(const GElf_Sym& symbol) {
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      return 0;
    case STB_WEAK:
      return 1;
    default:
      return 2;
  }
}

bool is_line_table(const char* section) {
  return std::strcmp(section, ".debug_line") == 0 || std::strcmp(section, ".zdebug_line") == 0;
}

class ElfSymbols final : public SymbolFile {
 public:
  ElfSymbols(std::string path, int fd) : SymbolFile(std::move(path), fd) {}
  ~ElfSymbols() override {
    if (elf_ != nullptr) elf_end(elf_);
  }
  Status read_structure();
  Status load() override;
  Elf* debug_elf() override { return has_lines_ ? elf_ : nullptr; }

 private:
  std::string_view name_at(uint32_t name) const override;
  void read_sections();

  Elf* elf_ = nullptr;
  size_t table_section_ = 0;
  size_t strings_section_ = 0;
};

Status ElfSymbols::read_structure() {
  elf_version(EV_CURRENT);
  elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
  if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF) return elf_error(path_, "not an ELF file");
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_elf_gnu_build_id(elf_, &id);
  if (id_bytes > 0) {
    const uint8_t* bytes = static_cast<const uint8_t*>(id);
    build_id_.assign(bytes, bytes + id_bytes);
  }
  size_t segments = 0;
  if (elf_getphdrnum(elf_, &segments) != 0) return elf_error(path_, "program headers");
  uint64_t low = std::numeric_limits<uint64_t>::max();
  uint64_t high = 0;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_LOAD) continue;
    low = std::min<uint64_t>(low, segment.p_vaddr);
    high = std::max<uint64_t>(high, segment.p_vaddr + segment.p_memsz);
  }
  image_bytes_ = std::max(high, low) - low;  // 0 without segments
  read_sections();
  return {};
}

void ElfSymbols::read_sections() {
  size_t names = 0;
  const bool has_names = elf_getshdrstrndx(elf_, &names) == 0;
  for (Elf_Scn* section = elf_nextscn(elf_, nullptr); section != nullptr;
       section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const name = has_names ? elf_strptr(elf_, names, header.sh_name) : nullptr;
    if (name != nullptr && header.sh_type != SHT_NOBITS && is_line_table(name)) has_lines_ = true;
    const bool symtab = header.sh_type == SHT_SYMTAB;
    if (has_symtab_ || (!symtab && header.sh_type != SHT_DYNSYM)) continue;
    table_section_ = elf_ndxscn(section);
    strings_section_ = header.sh_link;
    has_symtab_ = symtab;
  }
}

Status ElfSymbols::load() {
  if (table_section_ == 0) return Error{Code::kNotFound, path_ + ": no symbol table"};
  Elf_Scn* section = elf_getscn(elf_, table_section_);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) {
    return elf_error(path_, "symbol table");
  }
  if (header.sh_size > kMaxSymbolTableBytes || header.sh_entsize == 0) {
    return Error{Code::kLimit,
                 path_ + ": symbol table of " + std::to_string(header.sh_size) + " bytes"};
  }
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr) return elf_error(path_, "symbol table");
  const size_t count =
      std::min<size_t>(data->d_size / static_cast<size_t>(header.sh_entsize), kMaxSymbols);
  for (size_t i = 1; i < count; ++i) {  // number 0 is none
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    entries_.push_back({symbol.st_value, symbol.st_size, rank_of(symbol), symbol.st_name});
  }
  sort_entries();
  return {};
}

// A table without a zero in it would make every name a walk through all of it.
std::string_view ElfSymbols::name_at(uint32_t offset) const {
  const char* name = elf_strptr(elf_, strings_section_, offset);
  if (name == nullptr) return {};
  return {name, strnlen(name, kMaxMangledBytes + 1)};
}

}  // namespace

Result<std::unique_ptr<SymbolFile>> open_elf(int fd, std::string path) {
  auto file = std::make_unique<ElfSymbols>(std::move(path), fd);
  COLLECT_TRY(file->read_structure());
  return std::unique_ptr<SymbolFile>(std::move(file));
}

}  // namespace collect::symbolize
