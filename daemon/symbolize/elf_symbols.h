// The function names of one ELF file. The file may be anybody's, so it is read with read(2) and not
// mapped (it may shrink meanwhile), and nothing but its build id is believed before that was
// compared. Used in collect-symbolizer alone: what libelf does with bad files is bounded there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

struct Elf;

namespace collect::symbolize {

struct FunctionSymbol {
  // As the linker has it, at most kMaxMangledBytes + 1; valid as long as the file object.
  std::string_view name;
  uint64_t offset = 0;  // of the address in the function: 0 for its entry
};

class ElfSymbols {
 public:
  // Takes the descriptor over. `path` is for show.
  static Result<std::unique_ptr<ElfSymbols>> open(int fd, std::string path);
  ~ElfSymbols();
  ElfSymbols(const ElfSymbols&) = delete;
  ElfSymbols& operator=(const ElfSymbols&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<uint8_t>& build_id() const { return build_id_; }
  uint64_t image_bytes() const { return image_bytes_; }  // of its loaded segments, first to last
  bool has_symtab() const { return has_symtab_; }        // .symtab, not just .dynsym

  // Reads the table; once, before find().
  Status load();
  Elf* elf() const { return elf_; }
  // The function that holds the module-relative address; an empty name when there is none.
  FunctionSymbol find(uint64_t address) const;
  // Calls visit(address, linkage name) for every symbol, by address; aliases one after another.
  void each_function(const std::function<void(uint64_t, std::string_view)>& visit) const;

 private:
  struct Entry {
    uint64_t value;
    uint64_t size;
    uint32_t rank;  // lower is the better name for the same address
    uint32_t name;
  };

  ElfSymbols(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status read_structure();
  std::string_view name_at(uint32_t offset) const;

  const std::string path_;
  const int fd_;
  Elf* elf_ = nullptr;
  std::vector<uint8_t> build_id_;
  uint64_t image_bytes_ = 0;
  bool has_symtab_ = false;
  size_t table_section_ = 0;
  size_t strings_section_ = 0;
  std::vector<Entry> entries_;  // sorted by value
};

}  // namespace collect::symbolize
