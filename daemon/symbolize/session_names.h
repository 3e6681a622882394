// The names of one sealed session, looked up file by file, and put into its manifest. A file that
// many modules name is looked up once. What one file does to its lookup (symbolizer.h) costs the
// names of its modules and is reported there.
//
// Plain values and calls that block: the owner decides when the next step is made.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/symbolizer.h"
#include "storage/manifest/manifest.h"

namespace collect::symbolize {

class SessionNames {
 public:
  // `ids`: the functions that occur, sorted. Modules that `manifest` has an outcome for are left as
  // they are, unless `again`.
  SessionNames(const storage::Manifest& manifest, const std::vector<uint64_t>& ids, bool again);

  bool done() const { return next_ == lookups_.size(); }
  // Looks the next file up. An error is none of the file's, and the same step can be made again:
  // kNotFound and kPermission: there is no collect-symbolizer; kCancelled: `stop` was set; else
  // this machine can't start it now. Files beyond `most_time` of all lookups are not looked up.
  Status step(const Symbolizer& symbolizer, const std::atomic<bool>* stop,
              std::chrono::nanoseconds most_time = kMaxSessionTime);

  // What is known by now, over what the manifest has: a name or an outcome of before stays where
  // there is no better one.
  void put_into(storage::Manifest& manifest) const;

  // By module id, those that were looked at.
  const std::vector<storage::ModuleSymbols>& outcomes() const { return outcomes_; }
  // What of the confinement this kernel does not have; empty when it has all.
  const std::string& missing() const { return missing_; }

 private:
  struct Lookup {
    storage::ModuleInfo file;         // path, build id and size are those of all its modules
    std::vector<size_t> modules;      // places in outcomes_
    std::vector<uint32_t> addresses;  // of all of them, sorted
  };

  void group(const std::vector<const storage::ModuleInfo*>& modules);
  void take(const Lookup& lookup, const Answer& answer);
  void say(const Lookup& lookup, const std::string& problem);

  std::vector<storage::ModuleSymbols> outcomes_;  // sorted by module id
  std::vector<std::vector<uint32_t>> addresses_;  // of each outcome's module, sorted
  std::vector<Lookup> lookups_;
  size_t next_ = 0;  // of lookups_
  std::chrono::nanoseconds spent_{};
  std::vector<storage::Symbol> symbols_;
  uint64_t name_bytes_ = 0;
  uint64_t left_out_ = 0;
  size_t most_names_;
  std::string missing_;
};

}  // namespace collect::symbolize
