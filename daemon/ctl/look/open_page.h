// `collectctl open [PATH…]`: captures as one page (formats/html) in the user's browser.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "daemon/ctl/convert/convert_command.h"

namespace collect::ctl {

// Pages without a name of their own are in the user's cache directory. Beyond this number the
// oldest are removed.
inline constexpr size_t kKeptPages = 16;

struct OpenOptions {
  ConvertOptions page;  // inputs, selection and perhaps the output; the rest is filled in here
  bool no_browser = false;
};

// Prints the page's address, file://…, on `out` and starts the browser: $BROWSER, else the
// desktop's where there is a display. 0: done. 1: done, but something is missing from the capture,
// or there is no browser to start. 2: no page was made.
int open_page(const OpenOptions& options, std::ostream& out, std::ostream& err);

// The address of the file at this absolute path.
std::string file_address(const std::string& path);

}  // namespace collect::ctl
