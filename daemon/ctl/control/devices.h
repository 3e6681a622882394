// collectctl devices: the phones that the collector knows of, and why one can't be used.
#pragma once

#include <string>

#include "daemon/ctl/control/online.h"

namespace collect::ctl {

struct DeviceOptions {
  std::string filter;  // serial, model or via
  bool watch = false;
};

int devices(const Online& online, const DeviceOptions& options);

}  // namespace collect::ctl
