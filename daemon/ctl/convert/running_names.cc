#include "daemon/ctl/convert/running_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/symbolize/session_names.h"
#include "formats/atf/session_reader.h"
#include "storage/manifest/manifest.h"
#include "storage/model/function_set.h"

namespace collect::ctl {
namespace {

// As the readers see the files: the header of one that is written has no count yet.
storage::FunctionSet functions_of(const read::Trace& trace) {
  constexpr size_t kPartBytes = size_t{64} << 20;  // of which little stays in memory
  static_assert(kPartBytes % atf::kEventBytes == 0);
  storage::FunctionSet functions;
  const atf::SessionReader session(trace.files());
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    const auto& index = session.threads()[i].index;
    if (!index) continue;
    const Bytes events = index->section_bytes();
    const size_t whole = events.size() / atf::kEventBytes * atf::kEventBytes;
    for (size_t at = 0; at < whole; at += kPartBytes) {
      functions.add_events(events.subspan(at, std::min(kPartBytes, whole - at)));
      trace.threads[i].index.drop_pages();
    }
  }
  return functions;
}

}  // namespace

bool is_recording(const read::Trace& trace) {
  if (!trace.manifest) return false;
  const auto manifest = storage::manifest_from_json(*trace.manifest);
  return manifest.ok() && manifest->state == storage::SessionState::kRecording;
}

Status name_functions(read::Trace& trace, const symbolize::SymbolizerOptions& options,
                      std::chrono::milliseconds most_time) {
  if (!trace.manifest || trace.kind != read::TraceKind::kSession) return {};
  const auto json = nlohmann::json::parse(*trace.manifest, nullptr, false);
  if (!json.is_object() || !json.contains("state")) return {};
  auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) return manifest.error();
  const bool is_named = manifest->symbols_state == storage::SymbolsState::kDone ||
                        manifest->symbols_state == storage::SymbolsState::kFailed;
  if (is_named) return {};
  const symbolize::Symbolizer symbolizer(options);
  symbolize::SessionNames names(*manifest, functions_of(trace).sorted(), false);
  while (!names.done()) COLLECT_TRY(names.step(symbolizer, nullptr, most_time));
  names.put_into(*manifest);
  trace.manifest = storage::manifest_to_json(*manifest);
  return {};
}

}  // namespace collect::ctl
