// The checks of a collector. Each one is a process of its own to it, so none depends on another.
#pragma once

#include <span>

#include "proto/conformance/check.h"
#include "proto/conformance/collectors/played_agent.h"

namespace collect::conformance {

struct CollectorCheck {
  Rule rule;
  Verdict (*judge)(const Target& target);
};

// In the order of WIRE.md's sections.
std::span<const CollectorCheck> collector_frame_checks();
std::span<const CollectorCheck> collector_opening_checks();
std::span<const CollectorCheck> collector_recording_checks();

// The verdict of a check whose subject was not reached.
inline Verdict not_reached(const Status& step) {
  return Verdict::skipped("not reached: " + step.error().message);
}

}  // namespace collect::conformance
