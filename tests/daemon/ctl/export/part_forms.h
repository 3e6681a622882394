// What several formats say of the same part of a session, in one form, so that one of them has it
// in full and the others are compared with that one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace collect::ctl::testing {

// [begin_ns, duration_ns, name] of each call, loss and stall, sorted. `calls_only` leaves out the
// last two, which Speedscope shows otherwise.
nlohmann::json slices_of_perfetto(const nlohmann::json& file, bool calls_only);
nlohmann::json slices_of_chrome(const nlohmann::json& file);
nlohmann::json slices_of_speedscope(const nlohmann::json& file, uint64_t origin_ns);
// [time_ns, value] of each change of the events per second.
nlohmann::json rates_of_perfetto(const nlohmann::json& file);
nlohmann::json rates_of_chrome(const nlohmann::json& file);

// [thread, stack, calls, self_ns] of what is not 0, sorted.
nlohmann::json stacks_of_profile(const nlohmann::json& file);
nlohmann::json stacks_of_page(const nlohmann::json& page);
// The lines of a folded file with the same stacks.
std::string folded_of_profile(const nlohmann::json& file, bool has_devices);

uint64_t origin_of_chrome(const nlohmann::json& file);

}  // namespace collect::ctl::testing
