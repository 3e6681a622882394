#include "storage/read/session_search.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "formats/atf/layout.h"
#include "storage/model/session_layout.h"

namespace collect::read {
namespace {

namespace fs = std::filesystem;
using storage::RootedDirectory;

FoundSession describe(const RootedDirectory& root, const std::string& below) {
  FoundSession session = named_session(root.path_of(below));
  session.below = below;
  if (const auto status = root.look_at(below)) {
#ifdef __APPLE__
    const timespec& written = status->st_mtimespec;
#else
    const timespec& written = status->st_mtim;
#endif
    session.written = {written.tv_sec, written.tv_nsec};
  }
  return session;
}

// Something that was recorded. Of a thread without a record there are a header and a footer.
bool has_events(const RootedDirectory& root, const std::string& below) {
  constexpr off_t kEmptyFileBytes = 2 * atf::kHeaderBytes;
  const auto is_larger = [&root](const std::string& file, off_t bytes) {
    const auto status = root.look_at(file);
    return status.ok() && S_ISREG(status->st_mode) && status->st_size > bytes;
  };
  const auto names = root.list(below);
  if (!names.ok()) return true;  // the command says what is wrong with it
  // Who packed it had something to pack.
  if (std::ranges::binary_search(*names, storage::kPackedLanesFile)) return true;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    const std::string inner = joined(below, name);
    if (number_after(name, "thread_")) {
      return is_larger(joined(inner, "index.atf"), kEmptyFileBytes) ||
             is_larger(joined(inner, "detail.atf"), kEmptyFileBytes);
    }
    return name == storage::kDial9File && is_larger(inner, 0);
  });
}

class Search {
 public:
  explicit Search(const RootedDirectory& root) : root_(root) {}

  void look_into(const std::string& below, int depth) {
    if (++visited_ > kMaxSearchedDirectories) return;
    const auto names = root_.list(below);
    if (!names.ok()) return;
    const std::string own_name = fs::path(root_.path_of(below)).filename().string();
    if (is_session_directory(root_, below, own_name, *names)) {
      found_.push_back(describe(root_, below));
      return;
    }
    if (depth == kMaxSearchDepth) return;
    for (const std::string& name : *names) {
      if (name == storage::kConvertingDirectory) continue;  // half made
      const std::string inner = joined(below, name);
      const auto status = root_.look_at(inner);
      if (status.ok() && S_ISDIR(status->st_mode)) look_into(inner, depth + 1);
    }
  }
  std::vector<FoundSession> take() { return std::move(found_); }
  bool has_seen_all() const { return visited_ <= kMaxSearchedDirectories; }

 private:
  const RootedDirectory& root_;
  std::vector<FoundSession> found_;
  size_t visited_ = 0;
};

}  // namespace

FoundSession named_session(const std::string& path) {
  constexpr size_t kStampLength = 15;
  FoundSession session;
  for (const fs::path& part : fs::path(path)) {
    const std::string name = part.string();
    if (!name.starts_with("session_") || name.size() < 8 + kStampLength) continue;
    if (const auto parts = storage::parse_session_name(name)) {
      session.stamp = parts->stamp;
      session.attempt = parts->attempt;
      session.is_recorded = parts->is_recorded();
      continue;
    }
    session.stamp = name.substr(8, kStampLength);
    session.attempt = number_after(name.substr(8 + kStampLength), "_").value_or(1);
  }
  return session;
}

const FoundSession& newest_with_events(const RootedDirectory& root,
                                       const std::vector<FoundSession>& found) {
  const auto newest = std::find_if(found.begin(), found.end(), [&root](const FoundSession& each) {
    return has_events(root, each.below);
  });
  return newest == found.end() ? found.front() : *newest;
}

// "thread_12" -> 12.
std::optional<uint32_t> number_after(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  uint32_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

std::string joined(const std::string& below, const std::string& name) {
  return below.empty() ? name : fmt::format("{}/{}", below, name);
}

// A bundle's manifest is above its sessions; a session's own lists
// threads or is beside them.
bool is_session_directory(const RootedDirectory& root, const std::string& below,
                          const std::string& own_name, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == storage::kPackedLanesFile) return true;
    if (!number_after(name, "thread_")) continue;
    const auto status = root.look_at(joined(below, name));
    // A link is refused when it is opened, and named.
    if (status.ok() && (S_ISDIR(status->st_mode) || S_ISLNK(status->st_mode))) return true;
  }
  return number_after(own_name, "pid_") && root.look_at(joined(below, "manifest.json")).ok();
}

std::vector<FoundSession> find_sessions(const RootedDirectory& root, bool* all) {
  Search search(root);
  search.look_into("", -1);
  std::vector<FoundSession> found = search.take();
  if (all != nullptr) *all = search.has_seen_all();
  std::sort(found.begin(), found.end(),
            [](const FoundSession& a, const FoundSession& b) { return a.key() > b.key(); });
  return found;
}

}  // namespace collect::read
