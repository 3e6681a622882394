// How numbers look to people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collect {

std::string with_thousands(uint64_t number);                  // "12,345,678"
std::string counted(uint64_t number, std::string_view noun);  // "1 thread", "12,345 threads"
std::string short_bytes(uint64_t bytes);     // "1.5 GB", decimal as disks and links count
std::string short_rate(double per_second);   // "12.3 M/s"
std::string short_duration(double seconds);  // "7 us", "850 ms", "12.3 s", "2 h 05 min"
std::string duration_text(uint64_t ns);      // three digits: "640 ns", "12.3 us", "5.12 ms"
std::string real_text(double number);        // with the fewest digits that give it back

}  // namespace collect
