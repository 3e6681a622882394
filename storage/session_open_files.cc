// Which of a session's files are open. The limit is the session's own, or lower where many others
// need descriptors; what is closed is opened again when something comes for it.
#include <algorithm>
#include <utility>

#include "storage/session.h"
#include "storage/session_budget.h"

namespace collect::storage {

void Session::count_open_files(size_t before, size_t after) {
  open_files_ += after - before;
  if (options_.budget != nullptr) {
    options_.budget->hold_open_files(open_files_ + roller_.open_files());
  }
}

// A quarter is closed at once, so that the search for the oldest is paid rarely. What is closed is
// synced before: a file that is opened again may not hear of an error in between.
Status Session::limit_open_files() {
  const size_t limit = options_.budget == nullptr
                           ? kMaxOpenFiles
                           : std::min(kMaxOpenFiles, options_.budget->open_files());
  if (open_files_ <= limit) return {};
  const size_t target = limit - limit / 4;
  std::vector<std::pair<uint64_t, ThreadWriter*>> by_use;
  for (Thread& thread : threads_) {
    if (thread.writer != nullptr && thread.writer->open_files() != 0) {
      by_use.emplace_back(thread.last_use, thread.writer.get());
    }
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_use, writer] : by_use) {
    if (open_files_ <= target) break;
    COLLECT_TRY(writer->sync_files());
    const size_t before = writer->open_files();
    writer->close_files();
    count_open_files(before, 0);
  }
  return {};
}

// Here no descriptor may be free: names of new files are synced by the next commit.
Status Session::close_files_of_others(const ThreadWriter* but) {
  for (Thread& thread : threads_) {
    ThreadWriter* const writer = thread.writer.get();
    if (writer == nullptr || writer == but || writer->open_files() == 0) continue;
    COLLECT_TRY(writer->sync_files());
    const size_t before = writer->open_files();
    writer->close_files();
    count_open_files(before, 0);
  }
  return {};
}

Status Session::release_files() {
  if (!failure_.ok()) return failure_;
  COLLECT_TRY(fail(close_files_of_others(nullptr)));
  roller_.release_file();
  note_capture_problem();
  count_open_files(0, 0);
  return {};
}

}  // namespace collect::storage
