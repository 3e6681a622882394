// A stranger's client of the control plane, which knows it by reflection alone: grpcurl or buf, as
// deploy/test.sh found them.
#pragma once

#include <string>

#include "tests/e2e/collector_process.h"

namespace collect::e2e {

class GrpcTool {
 public:
  // `variable` names the program: COLLECT_BUF or COLLECT_GRPCURL.
  explicit GrpcTool(const std::string& variable);

  bool is_there() const { return !program_.empty(); }
  // The request is JSON.
  Ending call(const CollectorProcess& collector, const Scratch& scratch, const std::string& method,
              const std::string& request) const;
  // What call() runs.
  Arguments call_line(const CollectorProcess& collector, const std::string& method,
                      const std::string& request) const;
  Ending list_methods(const CollectorProcess& collector, const Scratch& scratch) const;

 private:
  Arguments command(const Arguments& more) const;

  std::string program_;
  bool is_buf_ = false;
};

}  // namespace collect::e2e
