// The processes below one run that loaded the agent, as they report themselves
// (formats/core/run_file.h): also those that never reach the collector, with any user, root
// directory and namespaces.
//
// The folder holds the run's key, too, by which its collector admits processes that became another
// user. To write there, a process must know the name of a folder within it, which cannot be listed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "formats/core/result.h"
#include "formats/core/run_file.h"
#include "storage/fs/rooted_directory.h"

namespace collect::ctl {

// A process that was forked or loaded so recently may be about to record, or to reach the
// collector.
inline constexpr std::chrono::milliseconds kFreshProcess{1000};
// A drain that did nothing for so long is gone: it looks at its rings every 50 ms at least.
inline constexpr std::chrono::milliseconds kSilentDrain{5000};
// Beyond, processes are counted only.
inline constexpr size_t kMaxRunFiles = 65'536;
inline constexpr size_t kMaxKeptProcesses = 65'536;
inline constexpr size_t kMaxQuietPrograms = 1'000;

struct MissingProcess {
  uint32_t pid = 0;
  uint32_t uid = 0;
  std::string program;
  std::string reason;
};

// One that loaded the agent, and of which no traced function was called.
struct QuietProgram {
  std::string program;
  uint64_t processes = 0;
};

class RunProcesses {
 public:
  // In memory where the system has a folder for that, else in the one for temporary files. Removes
  // what runs that were killed have left there. kIo, kPermission.
  static Result<std::unique_ptr<RunProcesses>> make();
  ~RunProcesses();
  RunProcesses(const RunProcesses&) = delete;
  RunProcesses& operator=(const RunProcesses&) = delete;

  const std::string& directory() const { return records_; }  // COLLECT_RUN
  const std::string& key() const { return key_; }            // COLLECT_RUN_KEY
  std::string key_file() const { return folder_ + "/key"; }

  // Reads what the processes say now. While the program runs about once a second, so that records
  // of those that ended can be used again.
  void look();
  // As of the last look: whether a process that has no link to the collector has recorded something
  // and still ships it, or is about to. `while_alive`: also one whose program still runs.
  bool any_ships(bool while_alive) const;
  // Whether the process with this number in its own PID namespace runs.
  bool lives(pid_t pid) const;
  // Their drains end, if the collector is not there: it will not be.
  void end_run() const;

  // Those of which no session is among `sessions`, and which cannot have had none: oldest first.
  std::vector<MissingProcess> missing(const std::vector<control::v1::Session>& sessions) const;
  // By program, most first, without those that recorded something.
  std::vector<QuietProgram> quiet() const;
  // The process that was started, and what became of it by exec: the program of its last image that
  // loaded the agent; empty: none did.
  void set_program(pid_t pid) { program_ = pid; }
  std::string last_program(bool& recorded) const;
  uint64_t left_out() const;  // processes of which nothing is known but that they were there

 private:
  struct Process {
    run_file::Record record;  // its texts are terminated
    bool runs = false;
    bool drains = false;  // a drain ships for it
    bool ships = false;   // or may be about to, and the collector need not know it yet
  };
  struct Seen {
    std::vector<Process> processes;
    uint64_t left_out = 0;
  };

  RunProcesses() = default;
  bool look_at(const std::string& path);
  Process judge(const run_file::Record& record, uint64_t now_ms) const;
  void keep(const Process& process);
  template <class Visit>
  void for_each(Visit visit) const;

  std::string folder_;
  std::string records_;
  std::string key_;
  int lock_ = -1;  // on the key's file, as long as this run lasts
  uint64_t pid_namespace_ = 0;
  pid_t program_ = 0;
  std::vector<Process> ended_;
  std::map<std::string, uint64_t> ended_quiet_;
  uint64_t ended_left_out_ = 0;
  Seen seen_;
};

}  // namespace collect::ctl
