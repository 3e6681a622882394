// Names of zones that are threads, "app (12) / worker (34)" (wtf::thread_zone_name), taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collect::convert {

struct ZoneName {
  std::string process;
  std::string thread;  // the whole name, where it is none of this kind
  std::optional<uint32_t> pid;
  std::optional<uint32_t> tid;
};

ZoneName parse_zone_name(std::string_view text);

// The second of two threads with the same numbers, as a system gives them out again, is
// distinguished by its number in the session: "app (12) / worker (34) [thread 7]".
std::string numbered_zone_name(std::string_view name, uint32_t n);

}  // namespace collect::convert
