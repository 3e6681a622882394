#include "agent/drain/switches/switch_rings.h"

namespace collect::agent {

const char* SwitchRings::open(int32_t, const SwitchesWanted&) {
  return "this system reports no context switches";
}
void SwitchRings::close() {}
void SwitchRings::look() {}
bool SwitchRings::next(uint64_t, SwitchRecord&) {
  return false;
}

}  // namespace collect::agent
