// What an event of a time line says besides its name and time: a register, a count, a reason. The
// formats that have a place for such things take them in this shape.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace collect {

struct EventNote {
  enum class Kind : uint8_t {
    kFlag,     // value 0 or 1
    kNumber,   // value
    kAddress,  // value, for people in hexadecimal
    kText,     // text
  };
  std::string_view name;
  Kind kind = Kind::kNumber;
  uint64_t value = 0;
  std::string_view text;  // both borrowed: they live as long as the call that takes the note
};
using EventNotes = std::vector<EventNote>;

}  // namespace collect
