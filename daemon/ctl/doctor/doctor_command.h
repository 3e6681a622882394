// `collectctl doctor`: whether this workstation can record, and what keeps it from it.
#pragma once

#include <ostream>
#include <string>

#include "daemon/ctl/online/control_target.h"

namespace collect::ctl {

struct DoctorOptions {
  ControlTarget control;  // address empty: not given
  std::string root;       // empty: the running collector's, else that of `run`
  size_t columns = 0;     // of the terminal; 0: there is none
  bool json = false;
};

// kExitOk: no check is a problem; kExitFailed.
int doctor(const DoctorOptions& options, std::ostream& out);

}  // namespace collect::ctl
