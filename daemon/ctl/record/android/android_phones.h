// The phones behind the adb server, and whether apps on each can be recorded.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/ctl/record/phones/phones_report.h"

namespace collect::ctl {

// `serial`: this one alone; empty: all. `library`: the agent's file; empty: the installed one for
// the phone. `columns` of the terminal; 0: there is none.
PhonesReport look_at_android_phones(const std::string& serial, const std::string& library,
                                    size_t columns);

}  // namespace collect::ctl
