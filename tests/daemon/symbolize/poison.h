// Files and names that were made to hurt their reader, and a good file to compare them with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::symbolize::test {

// f(pair<int, int>, pair<that, that>, …): its text doubles with each of `depth` levels.
inline std::string exponential_name(size_t depth) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto substitution = [&](size_t number) {  // S_, S0_, S1_, …
    std::string digits;
    for (; number > 0; number = (number - 1) / 36) digits.insert(0, 1, kDigits[(number - 1) % 36]);
    return "S" + digits + "_";
  };
  std::string name = "_Z1fSt4pairIiiE";
  for (size_t level = 1; level <= depth; ++level) {
    const std::string last = substitution(level);
    name += "S_I" + last + last + "E";
  }
  return name;
}

struct ElfSymbol {
  uint64_t address = 0;
  std::string name;
  uint8_t info = 0x12;  // STB_GLOBAL, STT_FUNC
  uint64_t bytes = 16;
  uint16_t section = 1;
};

// A little ELF64 file with a build id and a symbol table, laid out by hand. Fields can be made
// false.
class ElfFile {
 public:
  std::vector<uint8_t> build_id = std::vector<uint8_t>(20, 0xab);
  std::vector<ElfSymbol> symbols;
  uint32_t table_type = 2;                            // SHT_SYMTAB; SHT_DYNSYM is 11
  std::vector<std::pair<uint64_t, uint64_t>> loaded;  // addresses and sizes of PT_LOAD
  uint64_t claimed_table_bytes = 0;                   // of .symtab; 0: the truth
  uint64_t claimed_strings_bytes = 0;                 // of .strtab; 0: the truth
  uint64_t claimed_sections = 0;                      // 0: the truth
  bool cyclic_notes = false;                          // the note's size leads back to itself

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> note;
    put<uint32_t>(note, 4);
    put<uint32_t>(note, static_cast<uint32_t>(build_id.size()));
    put<uint32_t>(note, 3);  // NT_GNU_BUILD_ID
    for (const char c : {'G', 'N', 'U', '\0'}) note.push_back(static_cast<uint8_t>(c));
    note.insert(note.end(), build_id.begin(), build_id.end());
    note.resize((note.size() + 7) / 8 * 8);
    if (cyclic_notes) store_le<uint32_t>(note.data() + 4, 0xfffffff0);
    std::vector<uint8_t> strings(1, 0);
    std::vector<uint8_t> table(24, 0);
    for (const ElfSymbol& symbol : symbols) {
      put<uint32_t>(table, static_cast<uint32_t>(strings.size()));
      table.push_back(symbol.info);
      table.push_back(0);
      put<uint16_t>(table, symbol.section);
      put<uint64_t>(table, symbol.address);
      put<uint64_t>(table, symbol.bytes);
      strings.insert(strings.end(), symbol.name.begin(), symbol.name.end());
      strings.push_back(0);
    }
    const uint64_t note_at = 64 + 56 * (1 + loaded.size());
    const uint64_t table_at = note_at + note.size();
    const uint64_t strings_at = table_at + table.size();
    const uint64_t sections_at = (strings_at + strings.size() + 7) / 8 * 8;
    std::vector<uint8_t> file = header(sections_at);
    for (const auto& [address, size] : loaded) put_program_header(file, 1, address, size);
    put_program_header(file, 4, note_at, note.size());
    for (const auto* part : {&note, &table, &strings}) {
      file.insert(file.end(), part->begin(), part->end());
    }
    file.resize(sections_at);
    put_section(file, 0, 0, claimed_sections, 0, 0);
    put_section(file, table_type, table_at,
                claimed_table_bytes ? claimed_table_bytes : table.size(), 2, 24);
    put_section(file, 3, strings_at, claimed_strings_bytes ? claimed_strings_bytes : strings.size(),
                0, 0);
    put_section(file, 7, note_at, note.size(), 0, 0);
    return file;
  }

 private:
  template <class T>
  static void put(std::vector<uint8_t>& out, T value) {
    out.resize(out.size() + sizeof value);
    store_le(out.data() + out.size() - sizeof value, value);
  }

  std::vector<uint8_t> header(uint64_t sections_at) const {
    std::vector<uint8_t> file = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0};
    file.resize(16);
    put<uint16_t>(file, 3);   // ET_DYN
    put<uint16_t>(file, 62);  // EM_X86_64
    put<uint32_t>(file, 1);
    put<uint64_t>(file, 0);
    put<uint64_t>(file, 64);
    put<uint64_t>(file, sections_at);
    put<uint32_t>(file, 0);
    put<uint16_t>(file, 64);
    put<uint16_t>(file, 56);
    put<uint16_t>(file, static_cast<uint16_t>(1 + loaded.size()));
    put<uint16_t>(file, 64);
    put<uint16_t>(file, claimed_sections != 0 ? uint16_t{0} : uint16_t{4});
    put<uint16_t>(file, 0);
    return file;
  }

  static void put_program_header(std::vector<uint8_t>& file, uint32_t type, uint64_t at,
                                 uint64_t bytes) {
    put<uint32_t>(file, type);
    put<uint32_t>(file, 4);
    for (const uint64_t value : {at, at, at, bytes, bytes, uint64_t{4}}) put<uint64_t>(file, value);
  }

  static void put_section(std::vector<uint8_t>& file, uint32_t type, uint64_t at, uint64_t bytes,
                          uint32_t link, uint64_t entry_bytes) {
    put<uint32_t>(file, 0);
    put<uint32_t>(file, type);
    put<uint64_t>(file, 0);
    put<uint64_t>(file, 0);
    put<uint64_t>(file, at);
    put<uint64_t>(file, bytes);
    put<uint32_t>(file, link);
    put<uint32_t>(file, 0);
    put<uint64_t>(file, 8);
    put<uint64_t>(file, entry_bytes);
  }
};

}  // namespace collect::symbolize::test
