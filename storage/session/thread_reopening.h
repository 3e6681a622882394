// The threads of a session that was not sealed: opened again, what is damaged in their files taken
// from the session's containers, and what these do not have left out. STORAGE.md "Recovery".
//
// Lives as long as Session::reopen(), on its thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/manifest/manifest.h"
#include "storage/session/session_symbols.h"
#include "storage/session/session_threads.h"
#include "storage/thread/page_restore.h"
#include "storage/thread/thread_writer.h"

namespace collect::storage {

class ThreadReopening {
 public:
  // `may_come_again`: what is damaged, and no manifest knew, is cut off with what is behind it,
  // because an agent has it until it is acknowledged. What a manifest knew stays in any case.
  ThreadReopening(Fs& fs, const SessionOptions& options, const std::string& directory,
                  Manifest& manifest, SessionThreads& threads, SessionSymbols& symbols,
                  bool may_come_again)
      : fs_(fs),
        options_(options),
        directory_(directory),
        manifest_(manifest),
        threads_(threads),
        symbols_(symbols),
        may_come_again_(may_come_again) {}

  // Adds each thread of the manifest to the session's. A thread that cannot be read is left out and
  // named in `problems`, as is what was damaged. kNoSpace: nothing is lost, but more space is
  // needed.
  Status run(std::vector<std::string>& problems);

  // Damaged in the files, whole in the containers.
  uint64_t restored_records() const { return restored_records_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct FoundThread {
    size_t place = 0;                      // in the manifest
    std::unique_ptr<ThreadWriter> writer;  // null when its files cannot be read
    Status problem;
    std::unique_ptr<PageRestore> restore;
    uint64_t known_dropped[2] = {};  // by lane: lost without a number, as the manifest has it
  };
  Result<FoundThread> open_found(size_t place, std::span<const Gap> gaps);
  Status restore_from_containers();
  Status end_reopen(FoundThread& found, std::vector<std::string>& problems);
  Status append_from_containers();

  Fs& fs_;
  const SessionOptions& options_;
  const std::string directory_;
  Manifest& manifest_;
  SessionThreads& threads_;
  SessionSymbols& symbols_;
  const bool may_come_again_;
  std::vector<FoundThread> found_;
  uint64_t restored_records_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace collect::storage
