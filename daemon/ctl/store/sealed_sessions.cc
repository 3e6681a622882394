#include "daemon/ctl/store/sealed_sessions.h"

#include <algorithm>

#include "storage/manifest/manifest.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kShortestPauseNs = 1'000'000'000;

bool is_ready(const storage::Manifest& manifest, uint64_t unix_ns, uint64_t patience_ns) {
  if (manifest.state == storage::SessionState::kRecording) return false;
  return manifest.symbols_state != storage::SymbolsState::kPending ||
         unix_ns > manifest.finished_unix_ns + patience_ns;
}

}  // namespace

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
    if (manifest.ok() && is_ready(*manifest, unix_ns, kNamingPatienceNs)) {
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
