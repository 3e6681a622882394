#include "storage/model/session_layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <tuple>
#include <utility>

namespace collect::storage {
namespace {

constexpr std::string_view kUnlinkedPrefix = "unlinked_";
constexpr std::string_view kUnlinkedSuffix = ".atf";

constexpr std::string_view kSessionPrefix = "session_";
constexpr std::string_view kSnapshotSuffix = "_snap";
constexpr std::string_view kConvertedSuffix = "_atf";
constexpr size_t kStampBytes = 15;  // YYYYMMDD_HHMMSS
constexpr uint32_t kNewestAtfVersion = 2;
constexpr std::string_view kPidPrefix = "pid_";
constexpr std::string_view kThreadPrefix = "thread_";

// Digits without a sign or a leading zero, so that each number has exactly one name.
std::optional<uint32_t> parse_number(std::string_view digits) {
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<uint32_t> parse_numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_number(name.substr(prefix.size()));
}

// Takes "_atf2" off the end of the name, if it is there. False: it has a number that no one gives.
bool take_ending(std::string_view& name, std::string_view suffix, uint32_t most,
                 std::optional<uint32_t>& number) {
  const size_t at = name.rfind(suffix);
  if (at == std::string_view::npos) return true;
  number = parse_number(name.substr(at + suffix.size()));
  name = name.substr(0, at);
  return number && *number != 0 && *number <= most;
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What sorts before what: the recorded session is before those that were made of it.
auto order_of(const SessionPath& session_path) {
  const SessionNameParts parts =
      parse_session_name(session_path.session).value_or(SessionNameParts{});
  return std::make_tuple(std::string(parts.stamp), parts.attempt, parts.snapshot.value_or(0),
                         parts.converted_to.value_or(0), session_path.pid);
}

}  // namespace

std::string session_name(uint64_t unix_ns, uint32_t attempt) {
  const time_t seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char stamp[32];
  const size_t length = std::strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &local);
  std::string name = std::string(kSessionPrefix) + std::string(stamp, length);
  if (attempt > 1) name += fmt::format("_{}", attempt);
  return name;
}

std::string pid_directory_name(uint32_t pid) {
  return std::string(kPidPrefix) + std::to_string(pid);
}

std::string thread_directory_name(uint32_t id) {
  return std::string(kThreadPrefix) + std::to_string(id);
}

std::string thread_file_name(uint32_t thread, Lane lane) {
  return fmt::format("{}/{}", thread_directory_name(thread),
                     lane == Lane::kIndex ? kIndexFile : kDetailFile);
}

std::string thread_file_path(const std::string& directory, uint32_t thread, Lane lane) {
  return fmt::format("{}/{}", directory, thread_file_name(thread, lane));
}

std::optional<SessionNameParts> parse_session_name(std::string_view name) {
  if (!name.starts_with(kSessionPrefix)) return std::nullopt;
  name.remove_prefix(kSessionPrefix.size());
  if (name.size() < kStampBytes || !all_digits(name.substr(0, 8)) || name[8] != '_' ||
      !all_digits(name.substr(9, 6))) {
    return std::nullopt;
  }
  SessionNameParts parts;
  parts.stamp = name.substr(0, kStampBytes);
  name.remove_prefix(kStampBytes);
  if (!take_ending(name, kConvertedSuffix, kNewestAtfVersion, parts.converted_to) ||
      !take_ending(name, kSnapshotSuffix, kMaxSnapshots, parts.snapshot)) {
    return std::nullopt;
  }
  if (name.empty()) return parts;
  const std::optional<uint32_t> attempt = parse_number(name.substr(1));
  if (name[0] != '_' || !attempt || *attempt < 2) return std::nullopt;
  parts.attempt = *attempt;
  return parts;
}

bool is_session_name(std::string_view name) {
  return parse_session_name(name).has_value();
}

std::string converted_session_name(std::string_view name, uint32_t atf_version) {
  return std::string(name.substr(0, name.rfind(kConvertedSuffix))) + std::string(kConvertedSuffix) +
         std::to_string(atf_version);
}

std::string snapshot_session_name(std::string_view name, uint32_t number) {
  return std::string(name) + std::string(kSnapshotSuffix) + std::to_string(number);
}

std::optional<uint32_t> parse_pid_directory(std::string_view name) {
  return parse_numbered(name, kPidPrefix);
}

std::optional<uint32_t> parse_thread_directory(std::string_view name) {
  return parse_numbered(name, kThreadPrefix);
}

std::string unlinked_file_name(uint64_t first_seq) {
  return std::string(kUnlinkedPrefix) + std::to_string(first_seq) + std::string(kUnlinkedSuffix);
}

std::optional<uint64_t> parse_unlinked_file_name(std::string_view name) {
  if (!name.starts_with(kUnlinkedPrefix) || !name.ends_with(kUnlinkedSuffix)) return std::nullopt;
  name.remove_prefix(kUnlinkedPrefix.size());
  name.remove_suffix(std::min(name.size(), kUnlinkedSuffix.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  // Each has one name.
  return std::to_string(number) == name ? std::optional(number) : std::nullopt;
}

const char* passthrough_file_name(PassthroughKind kind) {
  return kind == PassthroughKind::kSwitches ? kSwitchesFile : kDial9File;
}

std::string container_name(uint32_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "capture-%06u.rtc", number);
  return name;
}

std::optional<uint32_t> parse_container_name(std::string_view name) {
  constexpr std::string_view kPrefix = "capture-";
  constexpr std::string_view kSuffix = ".rtc";
  if (name.size() != kPrefix.size() + 6 + kSuffix.size() || !name.starts_with(kPrefix) ||
      !name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kPrefix.size(), 6);
  if (!all_digits(digits)) return std::nullopt;
  return parse_number(digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1)));
}

std::optional<SessionPath> parse_session_path(const std::string& root, std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<uint32_t> pid = parse_pid_directory(name.substr(slash + 1));
  if (!is_session_name(name.substr(0, slash)) || !pid) return std::nullopt;
  SessionPath session_path;
  session_path.session = name.substr(0, slash);
  session_path.pid = *pid;
  session_path.name = fmt::format("{}/{}", session_path.session, pid_directory_name(*pid));
  session_path.directory = fmt::format("{}/{}", root, session_path.name);
  return session_path;
}

std::optional<SessionPath> parse_session_directory(const std::string& directory) {
  const size_t pid = directory.rfind('/');
  const size_t session =
      pid == std::string::npos || pid == 0 ? std::string::npos : directory.rfind('/', pid - 1);
  if (session == std::string::npos) return std::nullopt;
  return parse_session_path(directory.substr(0, session), directory.substr(session + 1));
}

Result<SessionPath> make_session_directory(Fs& fs, const std::string& root, uint64_t unix_ns,
                                           uint32_t pid, bool durable) {
  COLLECT_TRY(fs.make_directories(root));
  SessionPath session_path;
  session_path.pid = pid;
  for (uint32_t attempt = 1;; ++attempt) {
    session_path.session = session_name(unix_ns, attempt);
    const Status made = fs.make_directory(fmt::format("{}/{}", root, session_path.session));
    if (made.ok()) break;
    if (made.code() != Code::kAlreadyExists) return made.error();
    if (attempt == kMaxSessionsPerSecond) {
      return Error{Code::kLimit,
                   fmt::format("{}: more than {} sessions in one second", root, attempt)};
    }
  }
  const std::string session_directory = fmt::format("{}/{}", root, session_path.session);
  session_path.name = fmt::format("{}/{}", session_path.session, pid_directory_name(pid));
  session_path.directory = fmt::format("{}/{}", root, session_path.name);
  Status made = fs.make_directory(session_path.directory);
  if (made.ok() && durable) made = fs.sync_directory(session_directory);
  if (made.ok() && durable) made = fs.sync_directory(root);
  if (made.ok()) return session_path;
  // An empty session directory would be taken for a lost session. What cannot be removed now is
  // still recognised as empty by recovery, so the results need no answer.
  (void)fs.remove_directory(session_path.directory);
  (void)fs.remove_directory(session_directory);
  return made.error();
}

Result<std::vector<SessionPath>> list_sessions(Fs& fs, const std::string& root,
                                               std::vector<Error>* refused) {
  auto sessions = fs.list_directory(root);
  if (!sessions.ok()) return sessions.error();
  std::vector<SessionPath> session_paths;
  for (const std::string& session : *sessions) {
    if (!is_session_name(session)) continue;
    auto children = fs.list_directory(fmt::format("{}/{}", root, session));
    if (!children.ok()) {  // removed meanwhile, or a file of that name, or refused
      if (refused != nullptr && children.code() == Code::kPermission) {
        refused->push_back(children.error());
      }
      continue;
    }
    for (const std::string& child : *children) {
      if (auto session_path = parse_session_path(root, fmt::format("{}/{}", session, child)))
        session_paths.push_back(*session_path);
    }
  }
  std::sort(session_paths.begin(), session_paths.end(),
            [](const SessionPath& a, const SessionPath& b) { return order_of(a) < order_of(b); });
  return session_paths;
}

Result<std::unique_ptr<RootLock>> RootLock::take(Fs& fs, const std::string& root) {
  auto lock = std::make_unique<RootLock>(fs, root);
  COLLECT_TRY(lock->hold());
  return lock;
}

Status RootLock::hold() {
  const std::string path = fmt::format("{}/{}", root_, kRootLockFile);
  std::lock_guard guard(mutex_);
  if (lock_ != nullptr && lock_->holds(path)) return {};
  COLLECT_TRY(fs_.make_directories(root_));
  auto lock = fs_.lock(path);
  if (!lock.ok()) return lock.error();
  lock_ = std::move(*lock);
  return {};
}

}  // namespace collect::storage
