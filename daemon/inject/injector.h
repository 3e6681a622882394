// Loads the agent into a running process, or talks to the one that is there. DYNAMIC.md
// "Attaching".
//
// No code of the process runs on a thread of its own but pthread_create, and that where the thread
// holds nothing: it is blocked in a system call, or runs code that is no allocator's. All the rest
// happens on a new thread, which waits for locks as any other does.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/inject/target.h"
#include "formats/core/result.h"
#include "formats/patch/attach_request.h"

namespace collect::inject {

// How long a thread is looked for that can be borrowed.
inline constexpr std::chrono::seconds kBorrowBound{10};
// How long a borrowed thread may take for pthread_create before it is given back.
inline constexpr std::chrono::milliseconds kCallBound{1'000};
// How long the library may take to load and to prepare its stubs.
inline constexpr std::chrono::seconds kLoadBound{60};
// How long all threads together may take to stop; the jumps are not written otherwise.
inline constexpr std::chrono::seconds kStopBound{5};

struct AttachSettings {
  std::string library;                 // absolute path of libcollect_agent.so
  std::vector<std::string> variables;  // "NAME=value": the settings, as COLLECT_* variables
  patch::AttachTask task = patch::kAttachStart;
  std::function<bool()> is_cancelled = nullptr;  // asked again and again; true: kCancelled
};

struct AttachOutcome {
  std::string message;                 // what the agent says of itself
  uint64_t jumps = 0;                  // written
  size_t threads = 0;                  // that were stopped for it
  size_t moved = 0;                    // of these, out of windows
  std::chrono::nanoseconds stopped{};  // for how long all of them were stopped
};

// Traces from a thread of its own, which also asks is_cancelled. Errors as of look_at_target(),
// and: kUnavailable: no thread could be borrowed or stopped in time, try again; kExhausted: the
// process may have no further thread; kCancelled; kUnsupported: the library can't be loaded, or
// nothing can be traced.
Result<AttachOutcome> attach(const Target& target, const AttachSettings& settings);

}  // namespace collect::inject
