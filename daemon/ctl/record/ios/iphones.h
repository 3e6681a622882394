// The iPhones behind usbmuxd, and whether apps on each can be recorded.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/ctl/record/phones/phones_report.h"

namespace collect::ctl {

// `udid`: this one alone; empty: all. `columns` of the terminal; 0: there is none.
PhonesReport look_at_iphones(const std::string& udid, size_t columns);

}  // namespace collect::ctl
