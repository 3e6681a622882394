#include "daemon/symbolize/lookup/lookup.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/demangle.h"
#include "daemon/symbolize/lookup/source_lines.h"
#include "daemon/symbolize/lookup/symbol_file.h"
#include "formats/core/text/function_pattern.h"

namespace collect::symbolize {
namespace {

constexpr uint64_t kPageRounding = 2 * 4096;  // image sizes are in whole pages or in bytes

using FilePointer = std::unique_ptr<SymbolFile>;

bool matches(const SymbolFile& file, const LookupRequest& request, bool is_own_path) {
  if (!request.build_id.empty()) return file.build_id() == request.build_id;
  if (!is_own_path || request.module_bytes == 0 || !file.build_id().empty()) return false;
  const uint64_t bytes = file.image_bytes();
  return std::max(bytes, request.module_bytes) - std::min(bytes, request.module_bytes) <
         kPageRounding;
}

// What a file knows of its functions: names of all of them first, then lines.
int worth_of(const SymbolFile& file) {
  return (file.has_symtab() ? 2 : 0) + (file.has_lines() ? 1 : 0);
}
constexpr int kMostWorth = 3;

// The best of the files, loaded. Null, with the reason in `said`, when there is none.
FilePointer choose(const LookupRequest& request, std::vector<ModuleFile> files, SourceFrame& said) {
  FilePointer best;
  for (ModuleFile& candidate : files) {
    if (best != nullptr && worth_of(*best) == kMostWorth) break;
    const bool is_own_path = candidate.is_own_path();
    std::string path = candidate.path();
    auto file = SymbolFile::open(candidate.release(), std::move(path), request.build_id);
    if (!file.ok() || !matches(**file, request, is_own_path)) continue;
    if (best == nullptr || worth_of(**file) > worth_of(*best)) best = std::move(*file);
  }
  if (best == nullptr) {
    said.problem = request.build_id.empty() ? kNoFileOfThisSize : kNoFile;
    return nullptr;
  }
  const Status loaded = best->load();
  if (!loaded.ok()) {
    said.problem = loaded.error().message;
    return nullptr;
  }
  if (request.build_id.empty()) said.problem = "no build id: matched by path and image size";
  said.path = best->path();
  return best;
}

std::string name_of(const FunctionSymbol& symbol) {
  std::string name = demangled(symbol.name);
  if (symbol.offset == 0) return name;
  char offset[24];
  const int bytes = std::snprintf(offset, sizeof offset, "+0x%llx",
                                  static_cast<unsigned long long>(symbol.offset));
  if (name.size() + static_cast<size_t>(bytes) > kMaxSymbolNameBytes) return name;
  return name + offset;
}

// mold names its stubs, "f$plt" and "f$pltgot"; other linkers do not.
FunctionSymbol function_at(const SymbolFile& file, uint32_t address) {
  const FunctionSymbol symbol = file.find(address);
  const bool may_be_stub =
      symbol.name.empty() || symbol.name.ends_with("$plt") || symbol.name.ends_with("$pltgot");
  if (!may_be_stub) return symbol;
  const FunctionSymbol behind = file.find_by_stub(address);
  return behind.name.empty() ? symbol : behind;
}

class Sender {
 public:
  Sender(FrameKind kind, const SendFrame& send) : kind_(kind), send_(send) {}

  std::vector<uint8_t>& body() { return body_; }
  // To be called between things that belong together.
  Status flush_if_full() {
    return body_.size() + kMaxPathBytes + 16 > kMaxAnswerFrameBytes ? flush() : Status();
  }
  Status flush() {
    if (body_.empty()) return {};
    const Status sent = send_(kind_, body_);
    body_.clear();
    return sent;
  }

 private:
  const FrameKind kind_;
  const SendFrame& send_;
  std::vector<uint8_t> body_;
};

// After the names: what a line table does to its reader costs none of them.
Status send_lines(SymbolFile& file, const std::vector<uint32_t>& named, uint64_t most_bytes,
                  const SendFrame& send, DoneFrame& done) {
  Sender lines(FrameKind::kLines, send);
  uint64_t bytes = 0;
  Elf* const debug_elf = named.empty() ? nullptr : file.debug_elf();
  if (debug_elf == nullptr) return {};
  COLLECT_TRY(find_lines(debug_elf, file.debug_base(), named,
                         [&](uint32_t address, std::string_view source, uint32_t line) -> Status {
                           if (bytes + source.size() > most_bytes) {
                             ++done.lines_left_out;
                             return {};
                           }
                           bytes += source.size();
                           append_line(lines.body(), address, source, line);
                           return lines.flush_if_full();
                         }));
  return lines.flush();
}

Status send_names(SymbolFile& file, const LookupRequest& request, const SendFrame& send,
                  DoneFrame& done) {
  Sender names(FrameKind::kNames, send);
  std::vector<uint32_t> named;
  uint64_t bytes = 0;
  for (const uint32_t address : request.addresses) {
    const FunctionSymbol symbol = function_at(file, address);
    if (symbol.name.empty()) continue;
    const std::string name = name_of(symbol);
    if (named.size() == request.most_names || bytes + name.size() > request.most_name_bytes) {
      ++done.left_out;
      continue;
    }
    named.push_back(address);
    bytes += name.size();
    append_name(names.body(), address, name);
    COLLECT_TRY(names.flush_if_full());
  }
  COLLECT_TRY(names.flush());
  return send_lines(file, named, request.most_name_bytes - bytes, send, done);
}

Status send_functions(const SymbolFile& file, const LookupRequest& request, const SendFrame& send,
                      DoneFrame& done) {
  Sender functions(FrameKind::kFunctions, send);
  Status status;
  file.each_function([&](uint64_t address, std::string_view linkage_name) {
    if (address > UINT32_MAX || !status.ok()) return;
    const std::string name = demangled(linkage_name);
    bool is_meant = false;
    for (size_t at = 0; at < request.patterns.size(); ++at) {
      if (!means_function(request.patterns[at], linkage_name, name)) continue;
      done.matched[at] = 1;
      is_meant = true;
    }
    if (!is_meant) return;
    append_function(functions.body(), static_cast<uint32_t>(address));
    status = functions.flush_if_full();
  });
  COLLECT_TRY(status);
  return functions.flush();
}

}  // namespace

Status look_up(const LookupRequest& request, std::vector<ModuleFile> files,
               const std::string& missing, const SendFrame& send) {
  SourceFrame said;
  said.missing = missing;
  const FilePointer file = choose(request, std::move(files), said);
  COLLECT_TRY(send(FrameKind::kSource, encode_source(said)));
  DoneFrame done;
  done.matched.assign(request.patterns.size(), 0);
  if (file != nullptr) {
    COLLECT_TRY(send_names(*file, request, send, done));
    if (!request.patterns.empty()) COLLECT_TRY(send_functions(*file, request, send, done));
  }
  return send(FrameKind::kDone, encode_done(done));
}

}  // namespace collect::symbolize
