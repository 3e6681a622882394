#include "daemon/ctl/convert/symbolize.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

#include "daemon/ctl/convert/debuginfod.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "daemon/symbolize/session_names.h"
#include "daemon/symbolize/symbolizer.h"
#include "formats/core/text/figures.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest_file.h"
#include "storage/model/session_layout.h"
#include "storage/model/stored_functions.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

struct NamedSession {
  std::string directory;
  storage::Manifest manifest;
  std::string missing;  // of the lookup's confinement
};

Result<storage::Manifest> sealed_manifest(storage::Fs& files, const std::string& directory) {
  auto text = storage::read_manifest_json(files, directory);
  if (!text.ok()) return text.error();
  auto manifest = storage::manifest_from_json(*text);
  if (!manifest.ok() && manifest.code() == Code::kLimit) return manifest.error();
  const auto json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("state")) {
    return Error{Code::kUnsupported,
                 directory + ": its manifest is not collectord's, so it is not changed"};
  }
  if (manifest.ok() && manifest->state == storage::SessionState::kRecording) {
    return Error{Code::kUnsupported,
                 directory + ": not sealed yet; collectctl recover seals it, if nothing writes it"};
  }
  return manifest;
}

// Held while the manifest is replaced. A collector that uses the root does not write the manifest
// of a session again that it has named, so that one is taken without.
Result<std::unique_ptr<storage::RootLock>> lock_root(storage::Fs& files,
                                                     const std::string& directory,
                                                     const storage::Manifest& manifest) {
  const auto session_path = storage::parse_session_directory(directory);
  if (!session_path) return std::unique_ptr<storage::RootLock>();
  const std::string root = session_path->root();
  auto lock = storage::RootLock::take(files, root);
  if (lock.ok()) return lock;
  if (manifest.symbols_state == storage::SymbolsState::kPending &&
      lock.code() == Code::kUnavailable) {
    return Error{
        Code::kUnavailable,
        fmt::format("{}: the collector that uses {} is about to name it", directory, root)};
  }
  return std::unique_ptr<storage::RootLock>();
}

Result<std::string> session_directory(const SymbolizeOptions& options, std::ostream& err) {
  const auto trace = read::open_trace(options.path);
  if (!trace.ok()) return trace.error();
  if (trace->kind != read::TraceKind::kSession) {
    return Error{Code::kInvalidArgument,
                 options.path + ": not a session; name the session's directory"};
  }
  if (!trace->choice.empty()) err << "collectctl: " << trace->choice << "\n";
  std::error_code error;
  const fs::path directory = fs::canonical(trace->path, error);
  if (error) return errno_error(error.value(), trace->path);
  return directory.string();
}

Result<symbolize::SymbolizerOptions> symbolizer_options(const SymbolizeOptions& options) {
  symbolize::SymbolizerOptions symbols;
  symbols.program = symbolize::symbolizer_program();
  for (const std::string& directory : options.directories) {
    std::error_code error;
    const fs::path found = fs::canonical(directory, error);
    if (error) return errno_error(error.value(), directory);
    if (!fs::is_directory(found, error)) {
      return Error{Code::kInvalidArgument, directory + ": not a directory"};
    }
    symbols.directories.push_back(found.string());
  }
  return symbols;
}

// Into the manifest. What of the lookup's confinement is missing on this kernel.
Result<std::string> put_names(const symbolize::SymbolizerOptions& symbols,
                              const std::vector<uint64_t>& functions, storage::Manifest& manifest) {
  const symbolize::Symbolizer symbolizer(symbols);
  symbolize::SessionNames names(manifest, functions, true);
  while (!names.done()) COLLECT_TRY(names.step(symbolizer, nullptr));
  names.put_into(manifest);
  return names.missing();
}

Result<NamedSession> name_session(const SymbolizeOptions& options, std::ostream& err) {
  auto symbols = symbolizer_options(options);
  if (!symbols.ok()) return symbols.error();
  auto directory = session_directory(options, err);
  if (!directory.ok()) return directory.error();
  storage::PosixFs files;
  auto manifest = sealed_manifest(files, *directory);
  if (!manifest.ok()) return manifest.error();
  const auto lock = lock_root(files, *directory, *manifest);
  if (!lock.ok()) return lock.error();
  const auto functions = storage::stored_functions(files, *directory, nullptr);
  if (!functions.ok()) return functions.error();
  auto missing = put_names(*symbols, functions->sorted(), *manifest);
  if (!missing.ok()) return missing.error();
  if (!options.debuginfod_client.empty()) {
    const auto folders =
        fetch_debug_files(options.debuginfod_client, *manifest,
                          [&err](const std::string& line) { err << line << "\n"; });
    if (!folders.ok()) return folders.error();
    for (const std::string& folder : *folders) symbols->directories.push_back(folder);
    if (!folders->empty()) missing = put_names(*symbols, functions->sorted(), *manifest);
    if (!missing.ok()) return missing.error();
  }
  manifest->symbols_state = storage::SymbolsState::kDone;
  manifest->symbols_tries = 0;
  COLLECT_TRY(storage::write_manifest(files, *directory, *manifest, true));
  return NamedSession{std::move(*directory), std::move(*manifest), std::move(*missing)};
}

std::string path_of(const NamedSession& outcome, uint32_t module_id) {
  for (const storage::ModuleInfo& module : outcome.manifest.modules) {
    if (module.module_id == module_id) return module.path;
  }
  return "";
}

void print_text(const NamedSession& outcome, TextOut& out) {
  for (const storage::ModuleSymbols& module : outcome.manifest.module_symbols) {
    const std::string path = path_of(outcome, module.module_id);
    out.put("module ");
    out.dec(module.module_id);
    if (!path.empty()) out.put(" ");
    out.printable(path);
    out.put(fmt::format(": {} of {} functions named", with_thousands(module.named),
                        with_thousands(module.functions)));
    if (!module.source.empty()) out.put(", from ");
    out.printable(module.source);
    if (!module.problem.empty()) out.put("; ");
    out.printable(module.problem);
    out.put('\n');
  }
  out.printable(outcome.directory);
  out.put(
      fmt::format(": {} functions have names\n", with_thousands(outcome.manifest.symbols.size())));
}

void print_json(const NamedSession& outcome, TextOut& out) {
  Json document = json_document();
  document["path"] = outcome.directory;
  document["symbols"] = outcome.manifest.symbols.size();
  document["modules"] = Json::array();
  for (const storage::ModuleSymbols& module : outcome.manifest.module_symbols) {
    Json one{{"module_id", module.module_id}};
    add_text(one, "path", path_of(outcome, module.module_id));
    one["functions"] = module.functions;
    one["named"] = module.named;
    add_text(one, "source", module.source);
    add_text(one, "problem", module.problem);
    document["modules"].push_back(std::move(one));
  }
  out.put(json_line(document));
}

}  // namespace

int symbolize(const SymbolizeOptions& options, std::ostream& out, std::ostream& err) {
  const Result<NamedSession> outcome = name_session(options, err);
  if (!outcome.ok()) {
    return Answer{options.json, out, err}.refuse(outcome.error(), 2);
  }
  TextOut text(out);
  if (options.json) {
    print_json(*outcome, text);
  } else {
    print_text(*outcome, text);
  }
  text.flush();
  if (!outcome->missing.empty()) err << "collectctl: " << printable(outcome->missing) << "\n";
  const auto& modules = outcome->manifest.module_symbols;
  return std::all_of(modules.begin(), modules.end(),
                     [](const auto& module) { return !module.source.empty(); })
             ? 0
             : 1;
}

}  // namespace collect::ctl
