#include <chrono>
#include <mutex>
#include <ostream>
#include <thread>

#include "daemon/ctl/store/sealed_sessions.h"
#include "daemon/ctl/store/store_commands.h"
#include "daemon/ctl/store/tables.h"
#include "daemon/machine/limited_process.h"
#include "daemon/upload/store.h"
#include "daemon/upload/upload_status.h"
#include "daemon/upload/uploader.h"
#include "storage/fs/posix_fs.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kFollowMemoryBytes = 512u << 20;
constexpr int kFollowNiceness = 10;
constexpr std::chrono::seconds kBetweenLooks{1};
// collectord removes a session when it is asked to, unless it is in use.
constexpr int kRemovalLooks = 100;
constexpr std::chrono::milliseconds kBetweenRemovalLooks{100};

// Lines of the main thread and of the uploader's.
class Reports {
 public:
  explicit Reports(std::ostream& out) : out_(out) {}
  void put(const upload::StoreReport& report) {
    const std::string line = report.to_line();
    const std::lock_guard lock(mutex_);
    if (report.remove.empty() && line == last_) return;
    if (report.remove.empty()) last_ = line;
    out_ << line << std::flush;
  }

 private:
  std::ostream& out_;
  std::mutex mutex_;
  std::string last_;  // guarded by mutex_
};

Status ask_to_remove(Reports& reports, storage::Fs& fs, const storage::SessionPath& session_path) {
  upload::StoreReport report;
  report.remove = session_path.name;
  reports.put(report);
  for (int i = 0; i < kRemovalLooks; ++i) {
    if (!fs.exists(session_path.directory)) return {};
    std::this_thread::sleep_for(kBetweenRemovalLooks);
  }
  return Error{Code::kUnavailable, session_path.name + " is in use, and is removed later"};
}

Status follow(const upload::StoreRequest& request, Reports& reports) {
  COLLECT_TRY(limit_process(kFollowMemoryBytes, kFollowNiceness));
  storage::Clock& clock = storage::system_clock();
  const auto keep = upload::parse_keep_local(request.keep_local);
  if (!keep.ok()) return keep.error();
  const auto tables = upload::parse_store_tables(request.tables);
  if (!tables.ok()) return tables.error();
  const auto opened = upload::open_location(request.location, clock);
  if (!opened.ok()) return opened.error();
  if (!opened->below.empty()) {
    return Error{Code::kInvalidArgument,
                 request.location.url + ": sessions go to a whole bucket, s3://BUCKET"};
  }
  upload::UploadSettings settings;
  settings.s3 = opened->settings;
  settings.keep_local = *keep;
  storage::PosixFs fs(request.output);
  const auto uploader =
      upload::Uploader::start(settings, {.fs = fs,
                                         .clock = clock,
                                         .credentials = *opened->credentials,
                                         .remove =
                                             [&](const storage::SessionPath& session_path) {
                                               return ask_to_remove(reports, fs, session_path);
                                             },
                                         .tables = wanted_tables(*tables)});
  if (!uploader.ok()) return uploader.error();
  SealedSessions sealed(fs, request.output, request.packed);
  while (true) {
    const auto ready = sealed.look(clock.monotonic_ns(), clock.unix_ns());
    Status looked = ready.ok() ? Status() : ready.error();
    if (ready.ok()) {
      for (const SealedSessions::Ready& one : *ready) {
        const Status added = (*uploader)->add(one.session_path, one.part);
        if (!added.ok()) looked = added;
      }
    }
    upload::StoreReport report;
    report.status = (*uploader)->status();
    if (!looked.ok()) report.status.problem = looked.error().message;
    reports.put(report);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

int follow_sessions(const upload::StoreRequest& request, std::ostream& out) {
  Reports reports(out);
  upload::StoreReport report;
  report.status.problem = follow(request, reports).error().message;
  reports.put(report);
  return 2;
}

}  // namespace collect::ctl
