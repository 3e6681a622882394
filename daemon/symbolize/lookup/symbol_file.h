// The function names of one file of a module: ELF, or Mach-O. The file is untrusted, so it is
// read with read(2) and not mapped (it may shrink meanwhile), and nothing but its build id is
// believed before that was compared. Used in collect-symbolizer alone: what bad files do to their
// readers is bounded there.
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

class SymbolFile {
 public:
  // Takes the descriptor over. `path` is for show. Of a Mach-O file with several architectures, the
  // one with this build id, or the first.
  static Result<std::unique_ptr<SymbolFile>> open(int fd, std::string path,
                                                  const std::vector<uint8_t>& build_id);
  virtual ~SymbolFile();
  SymbolFile(const SymbolFile&) = delete;
  SymbolFile& operator=(const SymbolFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<uint8_t>& build_id() const { return build_id_; }  // Mach-O: LC_UUID
  uint64_t image_bytes() const { return image_bytes_; }  // of its loaded segments, first to last
  bool has_symtab() const { return has_symtab_; }        // not just the symbols of a dynamic linker
  bool has_lines() const { return has_lines_; }

  // Reads the table; once, before find().
  virtual Status load() = 0;
  // Its DWARF as libdw reads it; null when it has none that can be read. Valid as long as this.
  virtual Elf* debug_elf() = 0;
  // What DWARF calls address 0 of the module.
  uint64_t debug_base() const { return debug_base_; }
  // The function that holds the module-relative address; an empty name when there is none.
  FunctionSymbol find(uint64_t address) const;
  // The function that the stub at this address leads to, where the linker has put one in the place
  // of the function: what a program calls the address of an indirect function (target_clones,
  // ifunc), or of one of a library. Empty: it is no such stub.
  virtual FunctionSymbol find_by_stub(uint64_t) const { return {}; }
  // Calls visit(address, linkage name) for every symbol, by address; aliases one after another.
  void each_function(const std::function<void(uint64_t, std::string_view)>& visit) const;

 protected:
  struct Entry {
    uint64_t value;
    uint64_t size;
    uint32_t rank;  // lower is the better name for the same address
    uint32_t name;
  };

  SymbolFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  // The text at `name` of an entry, to its end or to that of the table.
  virtual std::string_view name_at(uint32_t name) const = 0;

  const std::string path_;
  const int fd_;
  std::vector<uint8_t> build_id_;
  uint64_t image_bytes_ = 0;
  uint64_t debug_base_ = 0;
  bool has_symtab_ = false;
  bool has_lines_ = false;
  std::vector<Entry> entries_;  // load() sorts them
  void sort_entries();
};

// What open() finds out by the file's first bytes.
Result<std::unique_ptr<SymbolFile>> open_elf(int fd, std::string path);
Result<std::unique_ptr<SymbolFile>> open_mach_o(int fd, std::string path,
                                                const std::vector<uint8_t>& build_id);

}  // namespace collect::symbolize
