#include "daemon/ctl/control/stored_sessions.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <utility>
#include <vector>

#include "daemon/collector/agents/session_message.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/terminal/terminal.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/session_health.h"
#include "storage/model/session_layout.h"
#include "storage/read/file_bytes.h"
#include "storage/read/session_files.h"
#include "storage/read/session_search.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
using storage::RootedDirectory;

const std::string kNoManifest = "no manifest: ";

api::SessionState state_of(storage::SessionState state) {
  switch (state) {
    case storage::SessionState::kRecording:
      return api::SESSION_STATE_ACTIVE;
    case storage::SessionState::kComplete:
      return api::SESSION_STATE_COMPLETE;
    case storage::SessionState::kRecovered:
      return api::SESSION_STATE_RECOVERED;
    case storage::SessionState::kFailed:
      return api::SESSION_STATE_FAILED;
  }
  return api::SESSION_STATE_UNSPECIFIED;
}

Result<api::Session> read_manifest(const RootedDirectory& root, const std::string& below) {
  const auto file = read::FileBytes::open(root, read::joined(below, storage::kManifestFile));
  if (!file.ok()) return file.error();
  const Bytes bytes = file->bytes();
  if (bytes.size() > storage::kMaxManifestBytes) {
    return Error{Code::kLimit,
                 fmt::format("{}: larger than {} bytes",
                             root.path_of(read::joined(below, storage::kManifestFile)),
                             storage::kMaxManifestBytes)};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  storage::ManifestReading reading;
  const auto manifest = storage::manifest_from_json(text, &reading);
  if (!manifest.ok()) return manifest.error();
  api::Session session = session_of(*manifest);
  // Other programs write manifests without a state, which say nothing of what is missing.
  if (reading.said_state.empty()) {
    session.clear_state();
    session.clear_missing();
  }
  return session;
}

api::Session read_session(const RootedDirectory& root, const std::string& below) {
  auto read = read_manifest(root, below);
  api::Session session;
  if (read.ok()) {
    session = std::move(*read);
  } else {
    session.set_state(api::SESSION_STATE_FAILED);
    session.set_status(kNoManifest + read.error().message);
  }
  // The directory itself has its name alone.
  const std::string name = below.empty() ? root.path().substr(root.path().rfind('/') + 1) : below;
  session.set_name("sessions/" + name);
  session.set_path(root.path_of(below));
  return session;
}

// "reading manifest 120 of 4000", ten times a second at most.
class Progress {
 public:
  Progress(std::ostream& err, bool wanted, size_t all) : err_(err), wanted_(wanted), all_(all) {}

  void at(size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!wanted_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    restart_line(err_);
    err_ << "reading manifest " << done + 1 << " of " << all_ << std::flush;
    shown_ = true;
  }
  void end() {
    if (shown_) restart_line(err_);
    err_.flush();
  }

 private:
  std::ostream& err_;
  const bool wanted_;
  const size_t all_;
  // What is done sooner needs no line.
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  bool shown_ = false;
};

}  // namespace

api::Session session_of(const storage::Manifest& manifest) {
  api::Session message;
  const storage::SessionIdentity& identity = manifest.identity;
  const storage::SessionHealth health = storage::health_of(manifest);
  message.set_state(
      state_of(manifest.state == storage::SessionState::kComplete ? health.state : manifest.state));
  message.set_status(manifest.reason);
  message.set_process_name(identity.process_name);
  message.set_pid(identity.pid);
  message.set_device_id(identity.device_id);
  message.set_tag(identity.tag);
  const uint64_t begin_ns =
      manifest.created_unix_ns != 0 ? manifest.created_unix_ns : identity.start_unix_ns;
  if (begin_ns != 0) *message.mutable_start_time() = timestamp_of(begin_ns);
  if (manifest.finished_unix_ns != 0) {
    *message.mutable_end_time() = timestamp_of(manifest.finished_unix_ns);
  }
  const storage::SessionTotals& totals = manifest.totals;
  message.set_threads(std::max(totals.threads, static_cast<uint32_t>(manifest.threads.size())));
  message.set_events(totals.events);
  message.set_detail_records(totals.detail_records);
  message.set_lost_events(std::max(totals.lost_events, health.lost_events));
  message.set_lost_detail_records(totals.lost_detail_records);
  message.set_losses_known(health.losses_known);
  message.set_missing(health.missing);
  message.set_stored_bytes(totals.stored_bytes);
  message.set_container_bytes(totals.container_bytes);
  if (manifest.process_end.how != storage::ProcessEnd::How::kNotKnown) {
    *message.mutable_process_end() = to_message(manifest.process_end);
  }
  message.set_symbols(to_message(manifest.symbols_state));
  message.set_stall_count(totals.stalls.count);
  message.set_stalled_ns(totals.stalls.stalled_ns);
  message.set_page_wait_ns(totals.stalls.page_wait_ns);
  message.set_calls_left_out(totals.calls_left_out);
  return message;
}

int list_stored_sessions(const StoredSessionsOptions& options, std::ostream& out,
                         std::ostream& err) {
  const Answer answer{options.json, out, err};
  // Without a slash at its end, so that the paths below it have one.
  std::filesystem::path directory = std::filesystem::path(options.directory).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  const auto root = RootedDirectory::open(directory.string());
  if (!root.ok()) return answer.refuse_briefly(root.error(), 2);
  bool all = true;
  const std::vector<read::FoundSession> found = read::find_sessions(*root, &all);
  if (found.empty()) {
    return answer.refuse_briefly({Code::kNotFound, root->path() + ": no session in it"}, 2);
  }
  api::ListSessionsResponse response;
  Progress progress(err, options.progress, found.size());
  int code = all ? 0 : 1;
  for (size_t i = 0; i < found.size(); ++i) {
    progress.at(i);
    *response.add_sessions() = read_session(*root, found[i].below);
    if (response.sessions().rbegin()->status().starts_with(kNoManifest)) code = 1;
  }
  progress.end();
  out << (options.json ? message_line(response)
                       : session_table({response.sessions().begin(), response.sessions().end()},
                                       options.columns));
  out.flush();
  if (!all) {
    err << "collectctl: " << printable(root->path()) << ": only the first "
        << with_thousands(read::kMaxSearchedDirectories) << " directories were searched\n";
  }
  return code;
}

}  // namespace collect::ctl
