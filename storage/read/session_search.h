// The sessions below a directory: which there are, and which is the newest. Links, and what may not
// be read, are passed by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/fs/rooted_directory.h"

namespace collect::read {

inline constexpr int kMaxSearchDepth = 5;  // below a directory above sessions
inline constexpr size_t kMaxSearchedDirectories = 100000;

struct FoundSession {
  std::string stamp;        // "YYYYMMDD_HHMMSS" of the nearest session_… above, or empty
  uint32_t attempt = 0;     // N of session_…_N
  bool is_recorded = true;  // and not converted from the session of the same name
  std::pair<int64_t, int64_t> written;
  std::string below;
  auto key() const { return std::tie(stamp, attempt, is_recorded, written, below); }
};

// Newest first. `all` becomes false where the search ended at kMaxSearchedDirectories.
std::vector<FoundSession> find_sessions(const storage::RootedDirectory& root, bool* all = nullptr);

// What the name of a session's directory says, without a look at it.
FoundSession named_session(const std::string& path);

// The newest that has events, or the newest if none has any; `found` is not empty, and as
// find_sessions() returned it.
const FoundSession& newest_with_events(const storage::RootedDirectory& root,
                                       const std::vector<FoundSession>& found);

// `names`: what is in the directory `below` the root, whose last part is `own_name`.
bool is_session_directory(const storage::RootedDirectory& root, const std::string& below,
                          const std::string& own_name, const std::vector<std::string>& names);

// "thread_12" with "thread_" -> 12.
std::optional<uint32_t> number_after(const std::string& name, std::string_view prefix);
std::string joined(const std::string& below, const std::string& name);  // "below/name"

}  // namespace collect::read
