// Where the loader has no code for the processor.
#include "daemon/inject/injector.h"
#include "daemon/inject/target.h"

namespace collect::inject {

Result<Target> look_at_target(pid_t) {
  return Error{Code::kUnsupported, "only processes on x86-64 can be attached to"};
}

Result<AttachOutcome> attach(const Target&, const AttachSettings&) {
  return look_at_target(0).error();
}

}  // namespace collect::inject
