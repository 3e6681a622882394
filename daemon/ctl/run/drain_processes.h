// The processes that ship events for traced programs (COLLECT_DRAIN=process).
#pragma once

#include <cstddef>
#include <string>

namespace collect::ctl {

// Those of this user that live now and whose program was started with COLLECT_TAG=`tag`. 0 where
// the system has no /proc.
size_t count_drain_processes(const std::string& tag);

}  // namespace collect::ctl
