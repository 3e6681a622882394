// Symbol tables of ELF files, by libelf.
#include <elfutils/libdwelf.h>
#include <fmt/core.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/symbol_file.h"
#include "formats/core/bytes.h"

namespace collect::symbolize {
namespace {

Error elf_error(const std::string& path, const char* what) {
  const char* why = elf_errmsg(-1);
  return {Code::kDamaged,
          fmt::format("{}: {}: {}", path, what, why != nullptr ? why : "not usable")};
}

constexpr size_t kStubBytes = 16;

// C keeps names that begin so for the library itself: __read is also read. Those of C++ are others.
bool is_reserved(const char* name) {
  return name != nullptr && name[0] == '_' && name[1] != 'Z';
}

// Global names before weak before local ones: the public one is what a reader looks for; of a C
// library that is the name that programs call it by. At the address of an indirect function is its
// resolver, which may have a name of its own.
constexpr uint32_t kIndirectRank = 5;
uint32_t rank_of(const GElf_Sym& symbol, const char* name) {
  if (GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) return kIndirectRank;
  const uint32_t binding = GELF_ST_BIND(symbol.st_info);
  if (binding != STB_GLOBAL && binding != STB_WEAK) return 4;
  return (is_reserved(name) ? 2u : 0u) + (binding == STB_WEAK ? 1u : 0u);
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
  FunctionSymbol find_by_stub(uint64_t address) const override;
  Elf* debug_elf() override { return has_lines_ ? elf_ : nullptr; }

 private:
  std::string_view name_at(uint32_t name) const override;
  void read_sections();
  FunctionSymbol find_by_slot(uint64_t slot) const;
  FunctionSymbol named_by(const GElf_Shdr& relocations, const GElf_Rela& relocation) const;

  Elf* elf_ = nullptr;
  size_t table_section_ = 0;
  size_t strings_section_ = 0;
  mutable uint64_t relocations_read_ = 0;
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
    return Error{Code::kLimit, fmt::format("{}: symbol table of {} bytes", path_, header.sh_size)};
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
    const char* const name = elf_strptr(elf_, strings_section_, symbol.st_name);
    entries_.push_back({symbol.st_value, symbol.st_size, rank_of(symbol, name), symbol.st_name});
  }
  sort_entries();
  return {};
}

// Where a stub at `address` takes the address from that it jumps to; 0: it is no stub.
uint64_t slot_of_stub(uint16_t machine, uint64_t address, Bytes code) {
  if (machine == EM_X86_64) {
    constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = 0;
    if (code.size() >= 4 && std::equal(code.begin(), code.begin() + 4, kEndbr64)) at = 4;
    if (at < code.size() && code[at] == 0xf2) ++at;  // bnd
    // jmp *distance(%rip)
    if (code.size() < at + 6 || code[at] != 0xff || code[at + 1] != 0x25) return 0;
    return address + at + 6 + static_cast<uint64_t>(int64_t{load_le<int32_t>(&code[at + 2])});
  }
  if (machine == EM_AARCH64) {
    constexpr uint32_t kBtiC = 0xd503245f;
    const size_t at = code.size() >= 4 && load_le<uint32_t>(code.data()) == kBtiC ? 4 : 0;
    if (code.size() < at + 8) return 0;
    const uint32_t page = load_le<uint32_t>(&code[at]);      // adrp x16, page
    const uint32_t load = load_le<uint32_t>(&code[at + 4]);  // ldr x17, [x16, #offset]
    if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) return 0;
    const uint64_t pages = (page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);
    const auto distance = static_cast<int64_t>(pages << 43) >> 31;  // 21 bits, in pages of 4 KiB
    return ((address + at) & ~uint64_t{0xfff}) + static_cast<uint64_t>(distance) +
           (load >> 10 & 0xfff) * 8;
  }
  return 0;
}

bool is_indirect(uint16_t machine, uint64_t type) {
  return machine == EM_X86_64 ? type == R_X86_64_IRELATIVE : type == R_AARCH64_IRELATIVE;
}

FunctionSymbol ElfSymbols::find_by_stub(uint64_t address) const {
  GElf_Ehdr file;
  if (gelf_getehdr(elf_, &file) == nullptr) return {};
  for (Elf_Scn* section = elf_nextscn(elf_, nullptr); section != nullptr;
       section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const bool has_code = header.sh_type == SHT_PROGBITS && (header.sh_flags & SHF_EXECINSTR) != 0;
    if (!has_code || address < header.sh_addr || address - header.sh_addr >= header.sh_size) {
      continue;
    }
    std::array<uint8_t, kStubBytes> code{};
    const uint64_t at = address - header.sh_addr;
    const ssize_t bytes =
        ::pread(fd_, code.data(), std::min<uint64_t>(code.size(), header.sh_size - at),
                static_cast<off_t>(header.sh_offset + at));
    if (bytes <= 0) return {};
    const uint64_t slot =
        slot_of_stub(file.e_machine, address, Bytes(code.data(), static_cast<size_t>(bytes)));
    return slot == 0 ? FunctionSymbol() : find_by_slot(slot);
  }
  return {};
}

FunctionSymbol ElfSymbols::find_by_slot(uint64_t slot) const {
  for (Elf_Scn* section = elf_nextscn(elf_, nullptr); section != nullptr;
       section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA) continue;
    if (header.sh_size > kMaxSymbolTableBytes || header.sh_entsize == 0) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    const size_t count = data->d_size / static_cast<size_t>(header.sh_entsize);
    for (size_t i = 0; i < count && relocations_read_ < kMaxRelocationsRead; ++i) {
      ++relocations_read_;
      GElf_Rela relocation;
      if (gelf_getrela(data, static_cast<int>(i), &relocation) == nullptr) break;
      if (relocation.r_offset == slot) return named_by(header, relocation);
    }
  }
  return {};
}

// An indirect function by its resolver's address; another one by the symbol that the slot is for.
FunctionSymbol ElfSymbols::named_by(const GElf_Shdr& relocations,
                                    const GElf_Rela& relocation) const {
  GElf_Ehdr file;
  if (gelf_getehdr(elf_, &file) == nullptr) return {};
  if (is_indirect(file.e_machine, GELF_R_TYPE(relocation.r_info))) {
    const auto resolver = static_cast<uint64_t>(relocation.r_addend);
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) {
      return one.value == resolver && one.rank == kIndirectRank;
    });
    return entry == entries_.end() ? FunctionSymbol() : FunctionSymbol{name_at(entry->name), 0};
  }
  Elf_Scn* const section = elf_getscn(elf_, relocations.sh_link);
  Elf_Data* const symbols = section == nullptr ? nullptr : elf_getdata(section, nullptr);
  GElf_Shdr header;
  GElf_Sym symbol;
  const auto index = static_cast<int>(GELF_R_SYM(relocation.r_info));
  if (symbols == nullptr || index == 0 || gelf_getshdr(section, &header) == nullptr ||
      gelf_getsym(symbols, index, &symbol) == nullptr) {
    return {};
  }
  const char* const name = elf_strptr(elf_, header.sh_link, symbol.st_name);
  if (name == nullptr) return {};
  return {{name, strnlen(name, kMaxMangledBytes + 1)}, 0};
}

// Without the version that linkers put behind it in .symtab (read@@GLIBC_2.2.5). A table without a
// zero in it would make every name a walk through all of it.
std::string_view ElfSymbols::name_at(uint32_t offset) const {
  const char* name = elf_strptr(elf_, strings_section_, offset);
  if (name == nullptr) return {};
  const std::string_view whole(name, strnlen(name, kMaxMangledBytes + 1));
  const size_t version = whole.find('@', 1);
  return whole.substr(0, version);
}

}  // namespace

Result<std::unique_ptr<SymbolFile>> open_elf(int fd, std::string path) {
  auto file = std::make_unique<ElfSymbols>(std::move(path), fd);
  COLLECT_TRY(file->read_structure());
  return std::unique_ptr<SymbolFile>(std::move(file));
}

}  // namespace collect::symbolize
