// Looks function names up in the files of modules, by a child process for each file. The parent's
// side: what a peer named is opened, parsed and demangled in the child alone. SYMBOLIZE.md has the
// picture.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/symbolize/known_files.h"
#include "daemon/symbolize/protocol.h"
#include "formats/core/result.h"
#include "storage/model/session_types.h"

namespace collect::symbolize {

struct SymbolizerOptions {
  std::string program;                   // collect-symbolizer
  std::vector<std::string> directories;  // searched by build id and by file name
  std::vector<std::string> roots = {"/"};
  std::shared_ptr<KnownFiles> known_files{};  // where else a module may be found; null: nowhere
};

struct Answer {
  std::string source;   // the file that the names came from; empty without one
  std::string problem;  // why there is none, or what ended the lookup before its end
  std::string missing;  // what of the confinement this kernel does not have
  bool is_whole = false;
  std::vector<NamedAddress> names;  // of addresses that were asked for
  std::vector<uint32_t> functions;  // that the patterns mean
  std::vector<bool> matched;        // by pattern
  uint64_t left_out = 0;
  uint64_t lines_left_out = 0;
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options) : options_(std::move(options)) {}

  // Names of functions of one module file, at module-relative addresses, sorted. `most_names` and
  // `most_name_bytes` bound the answer; `stop` ends the lookup. A child that was killed or crashed
  // is no error: the answer holds what it said until then, and why it ended. kNotFound,
  // kPermission: the program itself can't be run; kCancelled: `stop` was set; else try again later.
  Result<Answer> name(const storage::ModuleInfo& module, std::vector<uint32_t> addresses,
                      uint64_t most_names, uint64_t most_name_bytes,
                      const std::atomic<bool>* stop) const;

  // The functions of a module that any of the patterns mean (function_pattern.h).
  Result<Answer> find(const storage::ModuleInfo& module, const std::vector<std::string>& patterns,
                      std::chrono::milliseconds deadline, const std::atomic<bool>* stop) const;

  const SymbolizerOptions& options() const { return options_; }

 private:
  // Where the module's own path does not lead to it, those of options().known_files may.
  Result<Answer> ask_at_each_path(const storage::ModuleInfo& module, LookupRequest request,
                                  std::chrono::milliseconds deadline,
                                  const std::atomic<bool>* stop) const;
  Result<Answer> ask(const LookupRequest& request, std::chrono::milliseconds deadline,
                     const std::atomic<bool>* stop) const;

  const SymbolizerOptions options_;
};

// The path of collect-symbolizer (own_program).
std::string symbolizer_program();

}  // namespace collect::symbolize
