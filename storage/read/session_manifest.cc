#include "storage/read/session_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "storage/read/session_files.h"

namespace collect::read {
namespace {

std::string file_name(const std::string& path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void append_hex(std::string& to, uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  to += "0x";
  to.append(digits, end);
}

}  // namespace

Result<SessionManifest> SessionManifest::parse(std::string_view text) {
  SessionManifest said;
  auto manifest = storage::manifest_from_json(text, &said);
  if (!manifest.ok()) return manifest.error();
  static_cast<storage::Manifest&>(said) = std::move(*manifest);
  for (size_t i = 0; i < said.threads.size(); ++i) said.positions.emplace(said.threads[i].id, i);
  std::stable_sort(said.gaps.begin(), said.gaps.end(),
                   [](const auto& a, const auto& b) { return a.thread < b.thread; });
  said.sort_stalls();
  return said;
}

Result<SessionManifest> SessionManifest::of(const Trace& trace) {
  auto said = parse(*trace.manifest);
  if (said.ok()) said->add_switches(trace);
  return said;
}

void SessionManifest::sort_stalls() {
  std::stable_sort(stalls.begin(), stalls.end(), [](const auto& a, const auto& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.first_ns < b.first_ns;
  });
}

void SessionManifest::add_switches(const Trace& trace) {
  const storage::StallTotals& sums = totals.stalls;
  const bool has_file = sums.switches + sums.lock_waits + sums.samples != 0;
  if (!identity.switches && !has_file) return;
  const size_t before = stalls.size();
  Status read;
  if (trace.switches) {
    read = storage::decode_switches(trace.switches->bytes(), stalls);
  } else if (has_file) {
    read = *trace.switches_error;
  }
  if (!read.ok()) {
    stalls.resize(before);
    identity.switches = false;
    identity.no_switches = fmt::format("{}: {}", storage::kSwitchesFile, read.error().message);
    problems.push_back({std::string(kSwitchesPlace), identity.no_switches});
  }
  sort_stalls();
}

const ManifestThread* SessionManifest::thread(uint32_t id) const {
  const auto at = positions.find(id);
  return at == positions.end() ? nullptr : &threads[at->second];
}

storage::StallTotals SessionManifest::stall_totals() const {
  storage::StallTotals sum;
  for (const storage::Stall& stall : stalls) sum.add(stall);
  return sum;
}

std::optional<storage::SessionHealth> SessionManifest::health() const {
  if (said_state.empty()) return std::nullopt;
  return storage::health_of(*this);
}

std::optional<storage::SessionHealth> session_health(const Trace& trace,
                                                     const SessionManifest* manifest) {
  if (trace.kind != TraceKind::kSession) return std::nullopt;
  if (manifest != nullptr) return manifest->health();
  const auto& error = trace.manifest_error;
  const bool is_there = trace.manifest || (error && error->code != Code::kNotFound);
  return storage::health_without_manifest(is_there ? "the manifest cannot be read"
                                                   : "there is no manifest");
}

NameTable::NameTable(const SessionManifest& manifest) {
  symbols_.reserve(manifest.symbols.size());
  for (const storage::Symbol& symbol : manifest.symbols) {
    if (!symbol.name.empty()) symbols_.emplace(symbol.function_id, symbol.name);
    if (!symbol.file.empty()) {
      sources_.emplace(symbol.function_id, SourceLocation{symbol.file, symbol.line});
    }
  }
  for (const storage::ModuleInfo& module : manifest.modules) {
    modules_.emplace(module.module_id, file_name(module.path));
  }
}

std::string_view NameTable::name_of(uint64_t function_id) const {
  Cached& cached = cache_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits)];
  if (cached.name != nullptr && cached.function_id == function_id) return *cached.name;
  if (const auto it = symbols_.find(function_id); it != symbols_.end()) {
    cached = {function_id, &it->second};
    return it->second;
  }
  made_.clear();
  append_unnamed(made_, function_id);
  return made_;
}

void NameTable::append_name(std::string& to, uint64_t function_id) const {
  if (const auto it = symbols_.find(function_id); it != symbols_.end()) {
    to += it->second;
  } else {
    append_unnamed(to, function_id);
  }
}

const SourceLocation* NameTable::source_of(uint64_t function_id) const {
  const auto it = sources_.find(function_id);
  return it == sources_.end() ? nullptr : &it->second;
}

std::string NameTable::module_name_of(uint32_t module_id) const {
  const auto module = modules_.find(module_id);
  if (module != modules_.end() && !module->second.empty()) return module->second;
  std::string number;
  append_hex(number, module_id);
  return number;
}

void NameTable::append_unnamed(std::string& to, uint64_t function_id) const {
  const auto module = modules_.find(static_cast<uint32_t>(function_id >> 32));
  if (module == modules_.end() || module->second.empty()) {
    append_hex(to, function_id);
  } else {
    to += module->second;
    to += '+';
    append_hex(to, function_id & UINT32_MAX);
  }
}

}  // namespace collect::read
