// The lines of functions in their sources, by the line tables of a file's DWARF. Used in
// collect-symbolizer alone, confined: what libdw does with bad files is bounded there.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

struct Elf;

namespace collect::symbolize {

using SeeLine = std::function<Status(uint32_t address, std::string_view file, uint32_t line)>;

// Calls see() for each of the addresses, sorted, that a line table has; not in their order. DWARF
// calls the first of them `base` and so on. Files are paths as the compiler was given them, without
// "." and ".." where they can be resolved. Without DWARF nothing is found. An error is that of
// see().
Status find_lines(Elf* elf, uint64_t base, const std::vector<uint32_t>& addresses,
                  const SeeLine& see);

}  // namespace collect::symbolize
