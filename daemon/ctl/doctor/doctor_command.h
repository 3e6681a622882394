// `collectctl doctor`: whether this machine and its phones can record, and what prevents it.
#pragma once

#include <ostream>
#include <string>

#include "daemon/ctl/control/connection/control_target.h"

namespace collect::ctl {

struct DoctorOptions {
  ControlTarget control;  // address empty: not given
  std::string root;       // empty: the running collector's, else that of `run`
  // The phone that is meant alone, of each kind; it has to be one that can be recorded on.
  std::string serial{};
  std::string udid{};
  std::string phone_agent{};  // the agent's file for Android; empty: the installed one
  size_t columns = 0;         // of the terminal; 0: there is none
  bool json = false;
};

// kExitOk: no check is a problem; kExitFailed.
int doctor(const DoctorOptions& options, std::ostream& out);

}  // namespace collect::ctl
