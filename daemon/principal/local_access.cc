#include "daemon/principal/local_access.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace collect::principal {
namespace {

constexpr std::string_view kGroupPrefix = "group:";
constexpr size_t kMaxEntryBytes = 1u << 20;  // one entry of the user or group database
constexpr int kMaxGroups = 65'536;           // NGROUPS_MAX of Linux

// Calls `look_up(buffer, size)` with room that grows until the answer fits; its last errno.
template <class LookUp>
int with_room(std::vector<char>& room, LookUp look_up) {
  for (room.resize(4096); room.size() <= kMaxEntryBytes; room.resize(room.size() * 2)) {
    const int error = look_up(room.data(), room.size());
    if (error != ERANGE) return error;
  }
  return ERANGE;
}

bool is_member(uid_t uid, gid_t group) {
  std::vector<char> room;
  passwd entry{};
  passwd* found = nullptr;
  const int error = with_room(room, [&](char* bytes, size_t size) {
    return ::getpwuid_r(uid, &entry, bytes, size, &found);
  });
  if (error != 0 || found == nullptr) return false;
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) {
    if (count <= static_cast<int>(groups.size()) || count > kMaxGroups) return false;
    groups.resize(static_cast<size_t>(count));
  }
  groups.resize(static_cast<size_t>(count));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

LocalAccess::LocalAccess() : own_(::geteuid()) {}

Status LocalAccess::check_syntax(std::string_view text) {
  if (text == "user" || text == "any") return {};
  if (text.starts_with(kGroupPrefix) && text.size() > kGroupPrefix.size() &&
      text.find('\0') == std::string_view::npos) {
    return {};
  }
  return Error{Code::kInvalidArgument,
               fmt::format("\"{}\" is not one of user, group:NAME, any", text)};
}

Result<LocalAccess> LocalAccess::parse(std::string_view text) {
  COLLECT_TRY(check_syntax(text));
  LocalAccess access;
  access.text_ = text;
  if (text == "any") access.who_ = Who::kAny;
  if (!text.starts_with(kGroupPrefix)) return access;
  access.who_ = Who::kGroup;
  const std::string name(text.substr(kGroupPrefix.size()));
  std::vector<char> room;
  group entry{};
  group* found = nullptr;
  const int error = with_room(room, [&](char* bytes, size_t size) {
    return ::getgrnam_r(name.c_str(), &entry, bytes, size, &found);
  });
  if (found == nullptr) {
    if (error != 0) return errno_error(error, "local_access: group " + name);
    return Error{Code::kNotFound, fmt::format("local_access: there is no group \"{}\"", name)};
  }
  access.group_ = found->gr_gid;
  return access;
}

std::string LocalAccess::refusal(const Peer& peer) const {
  if (who_ == Who::kAny) return {};
  const std::string rule = fmt::format("local_access is \"{}\"", text_);
  if (peer.principal.kind != Principal::Kind::kUid) {
    return fmt::format(
        "the connecting user is not known ({}), and {}; use a Unix socket, or keep the connection "
        "open until the collector closes it",
        peer.unknown, rule);
  }
  if (peer.uid == own_ || peer.uid == 0) return {};
  if (who_ == Who::kGroup && is_member(peer.uid, group_)) return {};
  const std::string user = fmt::format("user {} may not connect: {}", peer.uid, rule);
  if (who_ == Who::kGroup) return user + "; become a member of that group";
  return fmt::format(
      "{} (user {} and root); run as that user, or start the collector with --local-access "
      "group:NAME",
      user, own_);
}

Status LocalAccess::open_socket_file(const std::string& path) const {
  constexpr mode_t kOwner = S_IRUSR | S_IWUSR;
  constexpr mode_t kGroup = S_IRGRP | S_IWGRP;
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  struct stat made{};
  if (::lstat(path.c_str(), &made) != 0) return errno_error(errno, path);
  // Not where it has the group already: a service may not be let change owners at all.
  if (who_ == Who::kGroup && made.st_gid != group_ &&
      ::lchown(path.c_str(), static_cast<uid_t>(-1), group_) != 0) {
    return errno_error(errno, fmt::format("{}: {}", path, text_));
  }
  const mode_t mode = who_ == Who::kUser    ? kOwner
                      : who_ == Who::kGroup ? kOwner | kGroup
                                            : kOwner | kGroup | kOthers;
  if (::chmod(path.c_str(), mode) != 0) return errno_error(errno, path);
  return {};
}

}  // namespace collect::principal
