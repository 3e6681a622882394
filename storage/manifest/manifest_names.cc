// Words of the manifest for our values, and the bounds of its texts.
#include <algorithm>
#include <utility>

#include "storage/manifest/manifest.h"

namespace collect::storage {

void rename_thread(ManifestThread& thread, const std::string& name, uint64_t from_ns) {
  if (name.empty() || name == thread.name) return;
  std::vector<ThreadName>& names = thread.names;
  // A rebuild passes all names again and again.
  const ThreadName next{from_ns, name};
  if (std::find(names.begin(), names.end(), next) != names.end()) return;
  if (names.empty() && !thread.name.empty()) names.push_back({thread.start_ns, thread.name});
  if (names.size() == kMaxThreadNames) names.pop_back();
  if (!names.empty()) names.push_back({std::max(from_ns, names.back().from_ns), name});
  thread.name = name;
}

std::string_view session_state_name(SessionState state) {
  switch (state) {
    case SessionState::kRecording:
      return "recording";
    case SessionState::kComplete:
      return "complete";
    case SessionState::kRecovered:
      return "recovered";
    case SessionState::kFailed:
      return "failed";
  }
  return "recording";
}

std::string_view symbols_state_name(SymbolsState state) {
  switch (state) {
    case SymbolsState::kNone:
      break;
    case SymbolsState::kPending:
      return "pending";
    case SymbolsState::kDone:
      return "done";
    case SymbolsState::kFailed:
      return "failed";
  }
  return "";
}

std::string_view lane_name(Lane lane) {
  return lane == Lane::kIndex ? "index" : "detail";
}

std::string_view passthrough_kind_name(PassthroughKind kind) {
  return kind == PassthroughKind::kSwitches ? "switches" : "dial9";
}

std::string_view process_end_name(ProcessEnd::How how) {
  switch (how) {
    case ProcessEnd::How::kNotKnown:
      break;
    case ProcessEnd::How::kExited:
      return "exited";
    case ProcessEnd::How::kSignaled:
      return "signaled";
    case ProcessEnd::How::kExeced:
      return "execed";
    case ProcessEnd::How::kUnknown:
      return "unknown";
  }
  return "";
}

std::vector<std::string> lost_reason_names(uint32_t reasons) {
  std::vector<std::string> names;
  for (const LostReasonName& reason : kLostReasonNames) {
    if (reasons & reason.bit) names.emplace_back(reason.name);
  }
  return names;
}

std::string_view stall_kind_name(StallKind kind) {
  return kStallKindNames[static_cast<size_t>(kind)].name;
}

std::optional<StallKind> stall_kind_of(std::string_view name) {
  for (const StallKindName& known : kStallKindNames) {
    if (name == known.name) return known.kind;
  }
  return std::nullopt;
}

void bound_text(std::string& text) {
  if (text.size() <= kMaxTextBytes) return;
  size_t end = kMaxTextBytes;
  // Not within a character: what is no UTF-8 can't be sent to clients.
  while (end > kMaxTextBytes - 3 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
}

void add_missing_input(Manifest& manifest, MissingInput missing) {
  if (manifest.input_missing.size() == kMaxMissingInput) {
    ++manifest.input_missing_left_out;
    return;
  }
  bound_text(missing.what);
  manifest.input_missing.push_back(std::move(missing));
}

}  // namespace collect::storage
