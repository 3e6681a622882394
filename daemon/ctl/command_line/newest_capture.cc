#include "daemon/ctl/command_line/newest_capture.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/runtime/newest_recording.h"
#include "daemon/runtime/running_collectors.h"
#include "formats/core/text/printable.h"
#include "storage/read/session_search.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using runtime::NewestRecording;

struct Candidate {
  read::FoundSession session;
  std::string path;  // of the session
  std::string root;  // where it was found, as the user would name it
};

// The newest below `root`; nothing where there is none, or `root` may not be read.
std::optional<Candidate> newest_below(const std::string& root) {
  const auto directory = storage::RootedDirectory::open(root);
  if (!directory.ok()) return std::nullopt;
  const std::vector<read::FoundSession> found = read::find_sessions(*directory);
  if (found.empty()) return std::nullopt;
  read::FoundSession newest = read::newest_with_events(*directory, found);
  const std::string path = directory->path_of(newest.below);
  return Candidate{std::move(newest), path, root};
}

bool is_newer(const read::FoundSession& session, const read::FoundSession& than) {
  return std::tie(session.stamp, session.attempt, session.written) >
         std::tie(than.stamp, than.attempt, than.written);
}

bool is_here(const std::string& control) {
  return control.starts_with("unix:") || control.starts_with("127.") ||
         control.starts_with("localhost:") || control.starts_with("[::1]:");
}

std::optional<Error> why_unreadable(const std::string& path) {
  const auto directory = storage::RootedDirectory::open(path);
  if (!directory.ok()) return directory.error();
  const auto names = directory->list("");
  if (!names.ok()) return names.error();
  return std::nullopt;
}

Error cannot_read(const NewestRecording& newest, const Error& error) {
  const std::string where = is_here(newest.control)
                                ? fmt::format("cannot be read by you ({})", error.message)
                                : "is on the collector's machine";
  return {Code::kPermission, fmt::format("your newest recording, {}, {}: fetch it with collectctl "
                                         "--control {} download {}, or name a capture",
                                         newest.path, where, newest.control, newest.session)};
}

}  // namespace

Result<std::string> newest_capture(std::ostream& err) {
  std::vector<std::string> roots = {kDefaultRoot};
  for (const auto& collector : runtime::running_collectors()) roots.push_back(collector.root);
  std::optional<Candidate> best;
  for (const std::string& root : roots) {
    std::optional<Candidate> candidate = newest_below(root);
    if (candidate && (!best || is_newer(candidate->session, best->session))) {
      best = std::move(candidate);
    }
  }
  const auto say = [&err](const std::string& path) {
    err << "collectctl: takes your newest recording, " << printable(path) << "\n";
    return path;
  };
  const std::optional<NewestRecording> noted = runtime::newest_recording();
  if (noted && (!best || best->session.stamp <= noted->stamp)) {
    const std::optional<Error> fault = why_unreadable(noted->path);
    if (!fault) return say(noted->path);
    // One that was removed is no recording any more.
    if (fault->code != Code::kNotFound || !is_here(noted->control)) {
      return cannot_read(*noted, *fault);
    }
  }
  if (best) return best->root == kDefaultRoot ? best->root : say(best->path);
  std::error_code ignored;
  if (fs::exists(kDefaultRoot, ignored)) return std::string(kDefaultRoot);  // says what is in it
  return Error{Code::kNotFound,
               fmt::format("there is no {} in this directory, and you made no recording that is "
                           "known: name a capture, or record a program with collectctl run",
                           kDefaultRoot)};
}

}  // namespace collect::ctl
