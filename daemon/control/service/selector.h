// Which agents, sessions and devices a request means.
#pragma once

#include <string>
#include <string_view>

#include "collect/control/v1/control.pb.h"

namespace collect::control {

// Nothing is given: everything is meant.
bool is_empty(const v1::Selector& selector);

// Whether all that is given matches. Names may lack their prefix.
bool matches(const v1::Agent& agent, const v1::Selector& selector);
bool matches(const v1::Session& session, const v1::Selector& selector);
// Serial, model, via, or the name with or without its prefix; empty: every one.
bool matches(const v1::Device& device, std::string_view word);

// "pid 4711 and tag \"run-1\"", as it came; for messages.
std::string text_of(const v1::Selector& selector);

}  // namespace collect::control
