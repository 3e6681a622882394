#include "daemon/ctl/store/sealed_sessions.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::ctl {
namespace {

constexpr uint64_t kShortestPauseNs = 1'000'000'000;

}  // namespace

bool SealedSessions::is_final(const storage::SessionPath& session_path,
                              const storage::Manifest& manifest, uint64_t unix_ns) const {
  if (manifest.state == storage::SessionState::kRecording) return false;
  if (unix_ns > manifest.finished_unix_ns + kPatienceNs) return true;
  if (manifest.symbols_state == storage::SymbolsState::kPending) return false;
  const bool has_events = manifest.totals.events + manifest.totals.detail_records != 0;
  return !packed_ || !has_events || manifest.state == storage::SessionState::kFailed ||
         fs_.exists(fmt::format("{}/{}", session_path.directory, storage::kPackedLanesFile));
}

Result<std::vector<SealedSessions::Ready>> SealedSessions::look(uint64_t now_ns, uint64_t unix_ns) {
  const auto session_paths = storage::list_sessions(fs_, root_);
  if (!session_paths.ok()) return session_paths.error();
  ++round_;
  std::vector<Ready> ready;
  for (const storage::SessionPath& session_path : *session_paths) {
    const auto [at, is_new] = seen_.try_emplace(session_path.name);
    Seen& seen = at->second;
    seen.round = round_;
    if (is_new) {
      const auto name = storage::parse_session_name(session_path.session);
      seen.first_ns = now_ns;
      seen.is_done = !name || !name->is_recorded();
    }
    if (seen.is_done || seen.next_ns > now_ns) continue;
    const auto manifest = storage::read_manifest(fs_, session_path.directory);
    if (manifest.ok() && is_final(session_path, *manifest, unix_ns)) {
      seen.is_done = true;
      ready.push_back({session_path, upload::part_name_of(manifest->identity.collector)});
    } else {
      // What took long may take as long again by a quarter.
      seen.next_ns =
          now_ns + std::clamp((now_ns - seen.first_ns) / 4, kShortestPauseNs, kLongestPauseNs);
    }
  }
  std::erase_if(seen_, [this](const auto& one) { return one.second.round != round_; });
  return ready;
}

}  // namespace collect::ctl
