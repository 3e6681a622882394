// One line of `collectctl doctor`.
#pragma once

#include <cstdint>
#include <string>

namespace collect::ctl {

struct Check {
  enum class Verdict : uint8_t {
    kOk,
    kWarning,  // programs of this machine can be recorded all the same
    kProblem,
  };
  std::string what;  // a few words: "open files"
  Verdict verdict = Verdict::kOk;
  std::string found;    // a sentence
  std::string way_out;  // what to do about it; empty: nothing
};

}  // namespace collect::ctl
