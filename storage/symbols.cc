#include "storage/symbols.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <utility>

#include "storage/elf_symbols.h"

namespace collect::storage {
namespace {

constexpr char kSystemDebugDirectory[] = "/usr/lib/debug";
constexpr size_t kMaxMangledBytes = 16 * 1024;  // longer names stay as they are
constexpr uint64_t kPageRounding = 2 * 4096;    // image sizes are told in whole pages or in bytes

using ElfFile = std::unique_ptr<ElfSymbols>;

// The last component of a peer's path. Compared with names that a directory has, never opened.
std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string> build_id_paths(const std::string& directory,
                                        const std::vector<uint8_t>& build_id) {
  if (build_id.size() < 2) return {};
  const std::string hex = hex_bytes(build_id);
  const std::string split = hex.substr(0, 2) + "/" + hex.substr(2);
  return {directory + "/.build-id/" + split + ".debug", directory + "/.build-id/" + split,
          directory + "/" + split + ".debug", directory + "/" + hex + ".debug",
          directory + "/" + hex};
}

class SymbolFinder {
 public:
  explicit SymbolFinder(const std::vector<std::string>& directories) : directories_(directories) {}

  // The best file for the module, loaded; null, with the reason in `said`, when there is none.
  ElfFile find(const ModuleInfo& module, ModuleSymbols& said) const {
    ElfFile best;
    if (module.path.starts_with("/")) consider(module.path, module, true, best, said);
    std::vector<std::string> by_id_directories = directories_;
    by_id_directories.push_back(kSystemDebugDirectory);
    for (const std::string& directory : by_id_directories) {
      for (const std::string& path : build_id_paths(directory, module.build_id)) {
        if (done(best)) break;
        consider(path, module, false, best, said);
      }
    }
    if (!done(best)) consider_same_names(module, best, said);
    if (best == nullptr && said.problem.empty()) said.problem = "no file with this build id";
    if (best == nullptr) return nullptr;
    const Status loaded = best->load();
    if (!loaded.ok()) {
      said.problem = loaded.error().message;
      return nullptr;
    }
    said.problem = module.build_id.empty() ? "no build id: matched by path and image size" : "";
    said.source = best->path();
    return best;
  }

 private:
  static bool done(const ElfFile& best) { return best != nullptr && best->has_symtab(); }

  void consider(const std::string& path, const ModuleInfo& module, bool is_own_path, ElfFile& best,
                ModuleSymbols& said) const {
    auto file = ElfSymbols::open(path);
    if (!file.ok()) {
      if (is_own_path) said.problem = file.error().message;
      return;
    }
    if (!matches(**file, module, is_own_path)) {
      if (is_own_path) said.problem = path + ": another build id or size";
      return;
    }
    if (best == nullptr || ((*file)->has_symtab() && !best->has_symtab())) best = std::move(*file);
  }

  static bool matches(const ElfSymbols& file, const ModuleInfo& module, bool is_own_path) {
    if (!module.build_id.empty()) return file.build_id() == module.build_id;
    if (!is_own_path || module.size == 0 || !file.build_id().empty()) return false;
    const uint64_t bytes = file.image_bytes();
    return std::max(bytes, module.size) - std::min(bytes, module.size) < kPageRounding;
  }

  void consider_same_names(const ModuleInfo& module, ElfFile& best, ModuleSymbols& said) const {
    const std::string_view name = base_name(module.path);
    if (name.empty() || module.build_id.empty()) return;
    for (const std::string& directory : directories_) {
      std::error_code error;
      std::filesystem::directory_iterator entries(directory, error);
      if (error) continue;
      for (const auto end = std::filesystem::directory_iterator(); entries != end;
           entries.increment(error)) {
        if (error) break;
        const std::string found = entries->path().filename().string();
        if (found == name || found == std::string(name) + ".debug") {
          consider(entries->path().string(), module, false, best, said);
        }
      }
    }
  }

  const std::vector<std::string>& directories_;
};

std::string manifest_name(const FunctionSymbol& symbol) {
  std::string name = demangled(symbol.name);
  if (symbol.offset != 0) {
    char text[24];
    std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(symbol.offset));
    name += text;
  }
  if (name.size() > kMaxSymbolNameBytes) {
    name.resize(kMaxSymbolNameBytes - 3);
    name += "...";
  }
  return name;
}

}  // namespace

std::string demangled(std::string_view linkage_name) {
  const std::string name(linkage_name);
  if (name.size() > kMaxMangledBytes || !name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

Result<ElfFile> load_symbol_file(const ModuleInfo& module,
                                 const std::vector<std::string>& directories) {
  ModuleSymbols said;
  ElfFile file = SymbolFinder(directories).find(module, said);
  if (file == nullptr) return Error{Code::kNotFound, module.path + ": " + said.problem};
  return file;
}

void name_functions(const FunctionSet& functions, const std::vector<std::string>& directories,
                    Manifest& manifest) {
  manifest.symbols.clear();
  manifest.module_symbols.clear();
  manifest.symbols_left_out = 0;
  std::unordered_map<uint32_t, const ModuleInfo*> modules;
  for (const ModuleInfo& module : manifest.modules) modules[module.module_id] = &module;
  const SymbolFinder finder(directories);
  const std::vector<uint64_t> ids = functions.sorted();
  uint64_t name_bytes = 0;
  for (size_t at = 0; at < ids.size();) {
    const uint32_t module_id = static_cast<uint32_t>(ids[at] >> 32);
    ModuleSymbols said;
    said.module_id = module_id;
    const auto module = modules.find(module_id);
    ElfFile file;
    if (module == modules.end()) {
      said.problem = "the agent named no such module";
    } else {
      file = finder.find(*module->second, said);
    }
    for (; at < ids.size() && ids[at] >> 32 == module_id; ++at) {
      ++said.functions;
      if (file == nullptr) continue;
      const FunctionSymbol symbol = file->find(static_cast<uint32_t>(ids[at]));
      if (symbol.name.empty()) continue;
      std::string name = manifest_name(symbol);
      if (manifest.symbols.size() == kMaxManifestSymbols ||
          name_bytes + name.size() > kMaxManifestSymbolBytes) {
        ++manifest.symbols_left_out;
        continue;
      }
      ++said.named;
      name_bytes += name.size();
      manifest.symbols.push_back({ids[at], std::move(name)});
    }
    manifest.module_symbols.push_back(std::move(said));
  }
}

}  // namespace collect::storage
