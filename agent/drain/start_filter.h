// The function filter that the settings ask for: patterns go to the collector, which knows the
// names of functions, and come back as SetFunctionFilter. Nothing is recorded before. AGENT.md
// "Function filter". Drain thread only but for prepare(), which is called on the thread that starts
// the agent; part of DrainThread.
#pragma once

#include <cstdint>

#include "agent/drain/link/control.h"
#include "agent/drain/link/frames.h"
#include "agent/drain/recording_state.h"
#include "agent/drain/ship/metadata_sender.h"
#include "agent/settings.h"

namespace collect::agent {

// How long a program is held for the filter that it is to be recorded with: until a collector is
// asked for it, and until that one has answered.
inline constexpr uint64_t kFilterHoldMs = 2000;
inline constexpr uint64_t kMaxFilterHoldMs = 30000;

class StartFilter {
 public:
  // `control`: what the thread that is held waits for. `settings` may be filled in later, before
  // prepare().
  StartFilter(const Settings& settings, MetadataSender& metadata_sender, RecordingState& recording,
              DrainControl& control)
      : settings_(settings),
        metadata_sender_(metadata_sender),
        recording_(recording),
        control_(control) {}

  void prepare() { is_wanted_ = settings_.has_filter(); }
  // It has not come yet, and nothing is recorded.
  bool is_wanted() const { return is_wanted_; }

  // While it is wanted. The program may have been let go without it: says so once.
  void say_if_late();
  // While it is wanted and the link is up: puts the question into `out`, as far as there is room;
  // the rest in the next call. `features`: of this link. False: there is nothing to ask.
  bool ask(uint64_t features, SendBuffer& out);
  // Asks again on the next one.
  void link_is_down();
  // A function filter holds. Any will do: someone may have set another one meanwhile. Begins the
  // recording, and lets the program go, if it was wanted.
  void has_come();

 private:
  const Settings& settings_;
  MetadataSender& metadata_sender_;
  RecordingState& recording_;
  DrainControl& control_;

  bool is_wanted_ = false;
  bool is_asked_ = false;  // on this link
  bool late_said_ = false;
};

}  // namespace collect::agent
