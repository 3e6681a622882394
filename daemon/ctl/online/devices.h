// collectctl devices: the phones that the collector knows of, and why one can't be used.
#pragma once

#include <string>

#include "daemon/ctl/online/commands.h"
#include "daemon/ctl/online/output.h"

namespace collect::ctl {

struct DeviceOptions {
  std::string filter;  // serial, model or via
  bool watch = false;
};

Columns device_columns();
std::vector<std::string> device_row(const control::v1::Device& device);

int devices(const Online& online, const DeviceOptions& options);

}  // namespace collect::ctl
