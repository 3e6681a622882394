#include "storage/export/exported_session.h"

#include <fmt/core.h>

#include <algorithm>

#include "storage/read/thread_breaks.h"
#include "storage/select/thread_choice.h"

namespace collect::exports {

Status ExportedSession::find_threads(const read::Trace& opened, const std::string& word) {
  read::SessionManifest said;
  if (opened.manifest) {
    auto parsed = read::SessionManifest::parse(*opened.manifest);
    if (parsed.ok()) said = std::move(*parsed);
  }
  const auto threads = select::chosen_threads({word}, opened, said);
  return threads.ok() ? Status() : threads.error();
}

Result<std::unique_ptr<ExportedSession>> ExportedSession::open(const read::Trace& opened,
                                                               const ExportSelection& selection) {
  read::SessionManifest said;
  storage::Manifest whole;
  if (opened.manifest) {
    auto parsed = read::SessionManifest::of(opened);
    if (parsed.ok()) said = std::move(*parsed);
    auto strict = storage::manifest_from_json(*opened.manifest);
    if (strict.ok()) whole = std::move(*strict);
  }
  const auto threads = select::chosen_threads(selection.threads, opened, said);
  if (!threads.ok()) return threads.error();
  std::unique_ptr<ExportedSession> session(
      new ExportedSession(opened, std::move(said), std::move(whole), *threads));
  auto functions = select::FunctionFilter::make(selection.functions, session->names);
  if (!functions.ok()) return functions.error();
  session->functions = std::move(*functions);
  return session;
}

Status ExportedSession::place(const std::vector<std::unique_ptr<ExportedSession>>& sessions) {
  select::TimeLine line;
  for (const auto& session : sessions) {
    auto clock = line.add(session->about);
    if (!clock.ok()) {
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: can't be laid on a time line with others: {}",
                               session->trace.path, clock.error().message)};
    }
    session->clock = std::move(*clock);
  }
  return {};
}

Status ExportedSession::choose_windows(
    const std::vector<std::unique_ptr<ExportedSession>>& sessions,
    const select::WindowWords& words) {
  select::SessionTimes line;
  line.is_time_line = true;
  line.start_ns = UINT64_MAX;
  for (const auto& session : sessions) {
    const uint64_t start_ns = select::session_times(session->reader, std::nullopt).start_ns;
    line.start_ns = std::min(line.start_ns, session->line_ns(start_ns));
  }
  for (const auto& session : sessions) {
    const auto window = select::window_of(words, [&] {
      return session->clock ? line
                            : select::session_times(session->reader, session->trace.manifest);
    });
    if (!window.ok()) return window.error();
    session->window_ = *window;
    if (!session->clock) continue;
    session->window_.first_ns = session->clock->device_ns(window->first_ns);
    if (window->last_ns != UINT64_MAX) {
      session->window_.last_ns = session->clock->device_ns(window->last_ns);
    }
  }
  return {};
}

std::optional<atf::TimeRange> ExportedSession::time_range(const calls::Window& window) const {
  uint64_t first_ns = UINT64_MAX;
  uint64_t last_ns = 0;
  for (const atf::SessionThread& thread : reader.threads()) {
    if (!thread.index || thread.index->size() == 0) continue;
    // Times may step back.
    for (const uint64_t seq : {uint64_t{0}, thread.index->size() - 1}) {
      first_ns = std::min(first_ns, thread.index->time_of(seq));
      last_ns = std::max(last_ns, thread.index->time_of(seq));
    }
  }
  for (const storage::Marker& marker : about.markers) {
    first_ns = std::min(first_ns, marker.at_ns);
    last_ns = std::max(last_ns, marker.at_ns);
  }
  first_ns = std::max(first_ns, window.first_ns);
  last_ns = std::min(last_ns, window.last_ns);
  if (first_ns > last_ns) return std::nullopt;
  return atf::TimeRange{first_ns, last_ns};
}

std::string ExportedSession::name_of_process() const {
  const std::string& name = about.identity.process_name.empty() ? manifest.identity.process_name
                                                                : about.identity.process_name;
  return name.empty() ? "process" : name;
}

std::string ExportedSession::device() const {
  const storage::SessionIdentity& process = about.identity;
  return process.device_model.empty() ? process.device_id : process.device_model;
}

std::string ExportedSession::name_of_thread(uint32_t n) const {
  const read::ManifestThread* said = manifest.thread(n);
  return said == nullptr ? "" : said->name;
}

bool ExportedSession::has_thread(uint32_t n) const {
  const auto& threads = reader.threads();
  const auto found = std::ranges::lower_bound(threads, n, {}, &atf::SessionThread::n);
  return found != threads.end() && found->n == n;
}

std::vector<calls::Gap> ExportedSession::gaps_of(uint32_t n, std::vector<uint32_t>& reasons) const {
  std::vector<calls::Gap> gaps;
  for (const storage::Gap& gap : read::event_gaps_of(manifest, n)) {
    gaps.push_back({gap.before_seq, gap.lost, gap.first_ns, gap.last_ns});
    reasons.push_back(gap.reasons);
  }
  return gaps;
}

std::vector<calls::Stall> ExportedSession::stalls_of(uint32_t n) const {
  return read::call_stalls_of(manifest, n);
}

void ExportedSession::drop_pages(uint32_t n) const {
  const read::TraceThread* files = trace.thread(n);
  if (files == nullptr) return;
  files->index.drop_pages();
  if (files->detail) files->detail->drop_pages();
}

}  // namespace collect::exports
