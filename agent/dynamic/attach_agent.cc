// The way in for Android's runtime, which loads the library into an app that runs and calls
// Agent_OnAttach there (`am attach-agent`).
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/dynamic/module_holds.h"
#include "agent/dynamic/plans.h"
#include "agent/lifecycle.h"
#include "agent/platform/system.h"
#include "agent/ring/hooks/alternate_stack.h"
#include "agent/settings.h"
#include "agent/text.h"
#include "formats/patch/attach_options.h"

namespace collect::agent {
namespace {

constexpr int kJniOk = 0;
constexpr int kJniError = -1;

// The options, taken apart. Of the app's main thread, in which the runtime attaches agents.
struct AttachOptions {
  char answer[kMaxAddress] = {};
  char variables[patch::kAgentOptionsBytes + 2] = {};  // each terminated, up to an empty one
};
AttachOptions given;

// Null, or what is wrong with them.
const char* take_apart(const char* options) {
  const char* const end = strchr(options, '\n');
  const size_t bytes = end == nullptr ? strlen(options) : static_cast<size_t>(end - options);
  if (bytes == 0 || bytes >= sizeof given.answer) return "its options name no file for the answer";
  memcpy(given.answer, options, bytes);
  given.answer[bytes] = '\0';
  memset(given.variables, 0, sizeof given.variables);
  if (end == nullptr) return nullptr;
  const size_t rest = strlen(end + 1);
  if (rest > patch::kAgentOptionsBytes) return "its options are too long";
  memcpy(given.variables, end + 1, rest);
  for (size_t i = 0; i < rest; ++i) {
    if (given.variables[i] == '\n') given.variables[i] = '\0';
  }
  return nullptr;
}

// Null, or why the code is as it was.
const char* change_code(const char* plans) {
  uint64_t jumps = 0;
  uint64_t count = 0;
  ModuleHolds holds;
  const char* const unprepared = prepare_plans(plans, ModuleHolds::hold, &holds, &jumps, &count);
  if (unprepared != nullptr) return unprepared;
  if (count == 0) return nullptr;
  if (const char* const wrong = write_prepared()) return wrong;
  use_prepared();
  return nullptr;
}

// Null, or why the agent is off.
const char* attach() {
  if (agent_running()) return "the app has an agent in it that runs";
  if (is_privileged()) return agent_status();
  Settings settings = default_settings;
  const char* error = nullptr;
  if (!settings_from_block(given.variables, sizeof given.variables, settings, &error)) return error;
  // As attach.cc: the end of a child would be seen by no one.
  settings.this_process_only = true;
  g_alternate_stacks_are_seen = false;  // threads may have had some before
  if (settings.plans[0] != '\0') {
    if (const char* const wrong = change_code(settings.plans)) return wrong;
  }
  return start_agent(settings) == StartError::kNone ? nullptr : agent_status();
}

// For collectctl, which sees neither the result nor what the agent says: the runtime attaches
// agents after its command has returned, and an app's standard error goes nowhere.
void answer(const char* begin, const char* sentence) {
  char line[patch::kAgentAnswerBytes];
  Text text(line, sizeof line);
  text.add(begin).add(sentence).add("\n");
  char begun[sizeof given.answer + 4];
  Text(begun, sizeof begun).add(given.answer).add(".new");
  const int fd = sys::open(begun, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  const bool whole = sys::write(fd, line, text.size()) == static_cast<ssize_t>(text.size());
  (void)sys::close(fd);
  if (whole) (void)sys::rename(begun, given.answer);
}

}  // namespace
}  // namespace collect::agent

extern "C" __attribute__((visibility("default"))) int Agent_OnAttach(void* /*virtual_machine*/,
                                                                     char* options,
                                                                     void* /*reserved*/) {
  namespace agent = collect::agent;
  namespace patch = collect::patch;
  const int saved_errno = errno;
  const char* wrong = agent::take_apart(options == nullptr ? "" : options);
  if (wrong == nullptr) {
    wrong = agent::attach();
    agent::answer(wrong == nullptr ? patch::kAnswerAttached : patch::kAnswerFailed,
                  wrong == nullptr ? agent::agent_status() : wrong);
  }
  errno = saved_errno;
  return wrong == nullptr ? agent::kJniOk : agent::kJniError;
}
