// Gives the functions of a session their names: at seal time, or later with better symbol files.
//
// A name is taken only from a file whose build id equals the module's. Looked at, in order: the
// module's own path (a traced program of this machine), then each symbol directory and
// /usr/lib/debug by build id, then files of the same name in the symbol directories. A file with
// .symtab wins over one that has .dynsym only. A module without a build id is named from its path
// alone, if the image has the same size; the manifest says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/elf_symbols.h"
#include "storage/function_set.h"
#include "storage/manifest.h"

namespace collect::storage {

inline constexpr size_t kMaxManifestSymbols = 200'000;
inline constexpr size_t kMaxSymbolNameBytes = 2048;  // longer names are cut, and end in "..."
inline constexpr uint64_t kMaxManifestSymbolBytes = 64ull << 20;  // of all names together

// Replaces the manifest's symbols and module_symbols. What is not found is said there.
void name_functions(const FunctionSet& functions, const std::vector<std::string>& directories,
                    Manifest& manifest);

// The file that names the module's functions, loaded. kNotFound says why there is none.
Result<std::unique_ptr<ElfSymbols>> load_symbol_file(const ModuleInfo& module,
                                                     const std::vector<std::string>& directories);

std::string demangled(std::string_view linkage_name);

}  // namespace collect::storage
