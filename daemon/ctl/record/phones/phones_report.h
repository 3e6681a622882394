// What `collectctl doctor` found of the phones behind the adb server, or behind usbmuxd.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "daemon/ctl/terminal/json.h"
#include "formats/core/result.h"

namespace collect::ctl {

struct PhonesReport {
  std::optional<Error> unreachable{};  // why the server did not answer; the rest is empty then
  std::string server{};                // "127.0.0.1:5037, version 1.0.41"
  size_t devices = 0;                  // that are looked at
  bool any_works = false;              // one of them can be recorded on
  std::string text{};                  // a table, and a sentence for each obstacle
  Json json{};
};

}  // namespace collect::ctl
