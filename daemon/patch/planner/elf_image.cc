#include "daemon/patch/planner/elf_image.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "formats/patch/plan_layout.h"

namespace collect::patch {
namespace {

constexpr size_t kRelativeWord = 8;
constexpr uint64_t kRelrTag = 36;  // DT_RELR, DT_RELRSZ: newer than Debian 12's elf.h
constexpr uint64_t kRelrBytesTag = 35;

template <class T>
bool read(Bytes bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

Error damaged_table(const char* what) {
  return {Code::kDamaged, fmt::format("its {} is damaged", what)};
}

std::string_view text_at(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(bytes.data() + offset);
  return {begin, strnlen(begin, bytes.size() - offset)};
}

// Hooks of the compilers' own instrumentation: such a program is traced without a plan.
bool is_hook(std::string_view name) {
  return name == "__cyg_profile_func_enter" || name == "collect_xray_register";
}

// Lists of places that the compiler left for someone who changes the code: no one jumps there.
bool is_entry_list_name(std::string_view name) {
  return name == "__patchable_function_entries" || name == "__mcount_loc";
}

Status check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Error{Code::kUnsupported, "it is no ELF file"};
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)) {
    return Error{Code::kUnsupported, "it is for another processor than x86-64 and arm64"};
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return Error{Code::kUnsupported, "it is neither a program nor a shared library"};
  }
  return {};
}

}  // namespace

Result<ElfImage> ElfImage::parse(Bytes file) {
  Elf64_Ehdr header;
  if (!read(file, 0, header)) return Error{Code::kUnsupported, "it is no ELF file"};
  COLLECT_TRY(check_header(header));
  ElfImage image;
  image.processor_ = static_cast<Processor>(header.e_machine);
  image.is_position_independent_ = header.e_type == ET_DYN;
  image.entry_ = header.e_entry;
  image.read_sections(file, &header);
  COLLECT_TRY(image.read_segments(file, &header));
  if (!image.is_position_independent_) {
    COLLECT_TRY(image.scan_data());
    COLLECT_TRY(image.read_entry_lists());
  }
  COLLECT_TRY(image.read_xray_map());
  std::sort(image.pointers_.begin(), image.pointers_.end());
  image.pointers_.erase(std::unique(image.pointers_.begin(), image.pointers_.end()),
                        image.pointers_.end());
  return image;
}

Status ElfImage::read_segments(Bytes file, const void* header_bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, header_bytes, sizeof header);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxSegments) {
    return damaged_table("table of segments");
  }
  std::vector<Elf64_Phdr> others;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr one;
    const uint64_t offset = header.e_phoff + i * sizeof one;
    if (offset < header.e_phoff || !read(file, offset, one))
      return damaged_table("table of segments");
    if (one.p_type != PT_LOAD) {
      others.push_back(one);
      continue;
    }
    if (one.p_offset > file.size() || one.p_filesz > file.size() - one.p_offset ||
        one.p_filesz > one.p_memsz || one.p_vaddr > kMaxImageBytes ||
        one.p_memsz > kMaxImageBytes - one.p_vaddr) {
      return damaged_table("table of segments");
    }
    segments_.push_back({one.p_vaddr, one.p_memsz, file.subspan(one.p_offset, one.p_filesz),
                         (one.p_flags & PF_X) != 0});
    image_bytes_ = std::max(image_bytes_, one.p_vaddr + one.p_memsz);
  }
  bool is_dynamic = false;
  for (const Elf64_Phdr& one : others) {
    const Bytes bytes = at(one.p_vaddr);
    const Bytes whole = bytes.first(std::min<uint64_t>(bytes.size(), one.p_filesz));
    if (one.p_type == PT_GNU_EH_FRAME) frame_header_ = one.p_vaddr;
    if (one.p_type == PT_NOTE) read_build_id(whole);
    if (one.p_type == PT_DYNAMIC) {
      is_dynamic = true;
      COLLECT_TRY(read_dynamic(whole));
    }
  }
  if (!is_dynamic) return Error{Code::kUnsupported, "it is linked statically"};
  return {};
}

// Only section headers name these lists. A file without them, or with damaged ones, has none.
void ElfImage::read_sections(Bytes file, const void* header_bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, header_bytes, sizeof header);
  const auto section_at = [&](uint32_t index, Elf64_Shdr& one) {
    const uint64_t offset = header.e_shoff + uint64_t{index} * sizeof one;
    return offset >= header.e_shoff && read(file, offset, one);
  };
  Elf64_Shdr names;
  if (header.e_shentsize != sizeof names || header.e_shstrndx >= header.e_shnum ||
      !section_at(header.e_shstrndx, names) || names.sh_offset > file.size()) {
    return;
  }
  const Bytes texts = file.subspan(names.sh_offset);
  Elf64_Shdr one;
  for (uint32_t i = 0; i < header.e_shnum && section_at(i, one); ++i) {
    if ((one.sh_flags & SHF_ALLOC) == 0 || one.sh_size > kMaxImageBytes ||
        one.sh_addr > kMaxImageBytes) {
      continue;
    }
    const std::string_view name = text_at(texts, one.sh_name);
    const Range range{one.sh_addr, one.sh_addr + one.sh_size};
    if (is_entry_list_name(name)) entry_lists_.push_back(range);
    if (name == "xray_instr_map") xray_map_ = range;
  }
}

bool ElfImage::is_entry_list(uint64_t slot) const {
  return std::ranges::any_of(
      entry_lists_, [slot](const Range& list) { return list.begin <= slot && slot < list.end; });
}

Bytes ElfImage::at(uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.bytes.size()) {
      return segment.bytes.subspan(address - segment.address);
    }
  }
  return {};
}

bool ElfImage::is_code(uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.bytes.size()) {
      return segment.executable;
    }
  }
  return false;
}

void ElfImage::read_build_id(Bytes note) {
  Elf64_Nhdr header;
  for (uint64_t offset = 0; read(note, offset, header);) {
    const uint64_t name = offset + sizeof header;
    const uint64_t content = name + ((uint64_t{header.n_namesz} + 3) & ~uint64_t{3});
    if (content + header.n_descsz > note.size()) return;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && text_at(note, name) == "GNU" &&
        header.n_descsz <= kMaxPlanBuildId) {
      build_id_ = note.subspan(content, header.n_descsz);
    }
    offset = content + ((uint64_t{header.n_descsz} + 3) & ~uint64_t{3});
  }
}

Status ElfImage::read_dynamic(Bytes dynamic) {
  uint64_t rela = 0, rela_bytes = 0, relr = 0, relr_bytes = 0, symbols = 0, names = 0,
           names_bytes = 0;
  Elf64_Dyn entry;
  for (uint64_t offset = 0; read(dynamic, offset, entry) && entry.d_tag != DT_NULL;
       offset += sizeof entry) {
    const auto tag = static_cast<uint64_t>(entry.d_tag);
    if (tag == DT_RELA) rela = entry.d_un.d_ptr;
    if (tag == DT_RELASZ) rela_bytes = entry.d_un.d_val;
    if (tag == kRelrTag) relr = entry.d_un.d_ptr;
    if (tag == kRelrBytesTag) relr_bytes = entry.d_un.d_val;
    if (tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
    if (tag == DT_STRTAB) names = entry.d_un.d_ptr;
    if (tag == DT_STRSZ) names_bytes = entry.d_un.d_val;
    if (tag == DT_TEXTREL) return Error{Code::kUnsupported, "its code is relocated when loaded"};
    if (tag == DT_INIT || tag == DT_FINI) COLLECT_TRY(add_pointer(entry.d_un.d_ptr));
  }
  if (rela_bytes != 0) COLLECT_TRY(read_relocations(rela, rela_bytes));
  if (relr_bytes != 0) COLLECT_TRY(read_relative(relr, relr_bytes));
  if (symbols != 0 && names > symbols) COLLECT_TRY(read_symbols(symbols, names, names_bytes));
  return {};
}

Status ElfImage::add_pointer(uint64_t address) {
  if (!is_code(address)) return {};
  if (pointers_.size() == kMaxPointers) return Error{Code::kLimit, "it has too many pointers"};
  pointers_.push_back(static_cast<uint32_t>(address));
  return {};
}

Status ElfImage::add_word(uint64_t slot, uint64_t value) {
  return is_entry_list(slot) ? add_entry(value) : add_pointer(value);
}

Status ElfImage::add_entry(uint64_t value) {
  if (!is_code(value)) return {};
  if (entries_.size() == kMaxPointers) return Error{Code::kLimit, "it has too many entries"};
  entries_.push_back(static_cast<uint32_t>(value));
  return {};
}

Status ElfImage::read_relocations(uint64_t address, uint64_t bytes) {
  Bytes table = at(address);
  table = table.first(std::min<uint64_t>(table.size(), bytes));
  relocations_ = table;
  Elf64_Rela one;
  for (uint64_t offset = 0; read(table, offset, one); offset += sizeof one) {
    const uint64_t type = ELF64_R_TYPE(one.r_info);
    if (type == relative_type() ||
        type == (is_arm64() ? R_AARCH64_IRELATIVE : R_X86_64_IRELATIVE)) {
      COLLECT_TRY(add_word(one.r_offset, static_cast<uint64_t>(one.r_addend)));
    }
  }
  return {};
}

uint64_t ElfImage::relative_type() const {
  return is_arm64() ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
}

uint64_t ElfImage::pointer_in(uint64_t slot) const {
  Elf64_Rela one;
  for (uint64_t offset = 0; read(relocations_, offset, one); offset += sizeof one) {
    if (one.r_offset != slot) continue;
    const auto addend = static_cast<uint64_t>(one.r_addend);
    if (ELF64_R_TYPE(one.r_info) == relative_type()) return addend;
    Elf64_Sym symbol;
    const uint64_t index = ELF64_R_SYM(one.r_info);
    const bool is_here = read(symbols_, index * sizeof symbol, symbol) &&
                         symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
    return is_here ? symbol.st_value + addend : 0;
  }
  uint64_t value = 0;
  (void)read(at(slot), 0, value);
  return value;
}

// DT_RELR: addresses, each followed by bits for the 63 words behind it.
Status ElfImage::read_relative(uint64_t address, uint64_t bytes) {
  Bytes table = at(address);
  table = table.first(std::min<uint64_t>(table.size(), bytes));
  uint64_t where = 0;
  uint64_t entry;
  const auto add_place = [&](uint64_t place) -> Status {
    uint64_t value;
    return read(at(place), 0, value) ? add_word(place, value) : Status();
  };
  for (uint64_t offset = 0; read(table, offset, entry); offset += sizeof entry) {
    if (entry % 2 == 0) {
      COLLECT_TRY(add_place(entry));
      where = entry + kRelativeWord;
      continue;
    }
    for (unsigned bit = 1; bit < 64; ++bit) {
      if ((entry >> bit & 1) != 0) COLLECT_TRY(add_place(where + (bit - 1) * kRelativeWord));
    }
    where += 63 * kRelativeWord;
  }
  return {};
}

// The table has no length of its own; linkers put the names behind it.
Status ElfImage::read_symbols(uint64_t symbols, uint64_t names, uint64_t names_bytes) {
  Bytes table = at(symbols);
  table = table.first(std::min<uint64_t>(table.size(), names - symbols));
  symbols_ = table;
  Bytes texts = at(names);
  texts = texts.first(std::min<uint64_t>(texts.size(), names_bytes));
  Elf64_Sym one;
  for (uint64_t offset = 0; read(table, offset, one); offset += sizeof one) {
    if (one.st_shndx == SHN_UNDEF && is_hook(text_at(texts, one.st_name))) {
      return Error{Code::kAlreadyExists,
                   "it is built with instrumentation of its own, which records it without a plan"};
    }
    const unsigned type = ELF64_ST_TYPE(one.st_info);
    if (one.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC)) {
      COLLECT_TRY(add_pointer(one.st_value));
    }
  }
  return {};
}

// Where nothing is relocated, any word may be a pointer; constants may be among the code.
Status ElfImage::scan_data() {
  for (const Segment& segment : segments_) {
    const uint64_t skipped = (kRelativeWord - segment.address % kRelativeWord) % kRelativeWord;
    uint64_t word;
    for (uint64_t at = skipped; read(segment.bytes, at, word); at += kRelativeWord) {
      if (!is_entry_list(segment.address + at)) COLLECT_TRY(add_pointer(word));
    }
  }
  return {};
}

// Distances from the fields themselves: nothing is relocated.
Status ElfImage::read_xray_map() {
  struct Sled {        // version 2
    int64_t sled;      //  0
    int64_t function;  //  8
    uint8_t kind;      // 16
    uint8_t always;    // 17
    uint8_t version;   // 18
    uint8_t zero[13];  // 19
  };
  static_assert(sizeof(Sled) == 32 && offsetof(Sled, function) == 8);
  Sled one;
  for (uint64_t at_sled = xray_map_.begin;
       xray_map_.end - at_sled >= sizeof one && read(at(at_sled), 0, one); at_sled += sizeof one) {
    if (one.version != 2) return {};
    COLLECT_TRY(
        add_entry(at_sled + offsetof(Sled, function) + static_cast<uint64_t>(one.function)));
  }
  return {};
}

// As scan_data(), of lists that need not be aligned.
Status ElfImage::read_entry_lists() {
  for (const Range& list : entry_lists_) {
    uint64_t word;
    for (uint64_t slot = list.begin; list.end - slot >= sizeof word && read(at(slot), 0, word);
         slot += sizeof word) {
      COLLECT_TRY(add_word(slot, word));
    }
  }
  return {};
}

}  // namespace collect::patch
