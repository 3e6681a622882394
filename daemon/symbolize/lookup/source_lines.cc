#include "daemon/symbolize/lookup/source_lines.h"

#include <elfutils/libdw.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "daemon/symbolize/limits.h"

namespace collect::symbolize {
namespace {

struct EndDwarf {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

// The lines of one unit's functions. Its table is read when one of the addresses is in it.
class Unit {
 public:
  Unit(Dwarf_Die& die, uint64_t base) : die_(die), base_(base) {}

  // `found`, by address: of several units that have one, the first counts.
  Status find(const std::vector<uint32_t>& addresses, std::vector<bool>& found,
              const SeeLine& see) {
    Dwarf_Addr range_base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(&die_, at, &range_base, &begin, &end)) > 0) {
      if (end <= base_) continue;
      auto address = std::lower_bound(addresses.begin(), addresses.end(),
                                      begin - std::min<uint64_t>(begin, base_));
      for (; address != addresses.end() && *address < end - base_; ++address) {
        const auto place = static_cast<size_t>(address - addresses.begin());
        if (found[place] || !find_one(*address)) continue;
        found[place] = true;
        COLLECT_TRY(see(*address, file_, line_));
      }
    }
    return {};
  }

 private:
  // The first of several rows for an address: the line where a function begins, not that of its
  // first statement.
  Dwarf_Line* row_of(uint64_t address) {
    if (rows_ == nullptr && dwarf_getsrclines(&die_, &rows_, &count_) != 0) count_ = 0;
    size_t low = 0;
    size_t high = count_;
    Dwarf_Addr at = 0;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (dwarf_lineaddr(dwarf_onesrcline(rows_, middle), &at) != 0) return nullptr;
      (at < address ? low : high) = at < address ? middle + 1 : middle;
    }
    bool is_end = true;  // of a sequence, which is no row of the address
    for (; low < count_; ++low) {
      Dwarf_Line* const row = dwarf_onesrcline(rows_, low);
      if (dwarf_lineaddr(row, &at) != 0 || at != address) break;
      if (dwarf_lineendsequence(row, &is_end) == 0 && !is_end) return row;
    }
    return low == 0 ? nullptr : dwarf_onesrcline(rows_, low - 1);
  }

  bool find_one(uint32_t address) {
    Dwarf_Line* const line = row_of(base_ + address);
    int number = 0;
    if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return false;
    const char* const file = dwarf_linesrc(line, nullptr, nullptr);
    if (file == nullptr || *file == '\0') return false;
    if (file != said_) {  // of one table, the same text is at the same place
      said_ = file;
      file_ = std::filesystem::path(file).lexically_normal().string();
    }
    line_ = static_cast<uint32_t>(number);
    return file_.size() <= kMaxPathBytes;
  }

  Dwarf_Die& die_;
  const uint64_t base_;
  Dwarf_Lines* rows_ = nullptr;  // by address
  size_t count_ = 0;
  const char* said_ = nullptr;
  std::string file_;
  uint32_t line_ = 0;
};

}  // namespace

Status find_lines(Elf* elf, uint64_t base, const std::vector<uint32_t>& addresses,
                  const SeeLine& see) {
  if (addresses.empty()) return {};
  const std::unique_ptr<Dwarf, EndDwarf> dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
  if (dwarf == nullptr) return {};
  std::vector<bool> found(addresses.size());
  size_t left = addresses.size();
  const SeeLine count = [&](uint32_t address, std::string_view file, uint32_t line) {
    --left;
    return see(address, file, line);
  };
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  while (left != 0 &&
         dwarf_get_units(dwarf.get(), unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    COLLECT_TRY(Unit(die, base).find(addresses, found, count));
  }
  return {};
}

}  // namespace collect::symbolize
