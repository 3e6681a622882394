// Which threads of a session a user's word means: to the daemon (detail) and to collectctl's
// commands for files. One meaning for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::storage {

// What a thread is known by; the operating system may have given one id to several in turn.
struct ThreadIdentity {
  std::optional<uint32_t> n;          // of thread_N; a running thread has none that is known
  std::optional<uint32_t> thread_id;  // the operating system's
  std::string name;
};

// "4711" is the operating system's id, as every other tool shows it; "thread_2" is the thread with
// that directory; "name=worker*" is every thread whose name matches (formats/core/text/glob.h).
class ThreadPattern {
 public:
  // kInvalidArgument: none of the three.
  static Result<ThreadPattern> parse(const std::string& word);

  bool means(const ThreadIdentity& thread) const;
  const std::string& word() const { return word_; }

 private:
  explicit ThreadPattern(const std::string& word) : word_(word) {}

  std::string word_;
  std::optional<uint32_t> n_;
  std::optional<uint32_t> thread_id_;
  std::string name_;
};

// The places in `threads` of those that any word means, in ascending order. kInvalidArgument as
// parse(); kNotFound when a word means none of them: the message lists what there is.
Result<std::vector<size_t>> select_threads(const std::vector<std::string>& words,
                                           const std::vector<ThreadIdentity>& threads);

}  // namespace collect::storage
