// `collectctl open [PATH…]`: captures as one page (formats/html) in the user's browser. The page of
// one whole capture is served (served_page.h), which is made a session for that where it is none;
// that of several, of a part, or with a name is a file.
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
  bool no_serve = false;  // a file in any case
};

// Prints the page's address on `out` and starts the browser (browser.h). 0: done. 1: the file was
// made, but there is no browser to start. 2: no page was made.
int open_page(const OpenOptions& options, std::ostream& out, std::ostream& err);

// The address of the file at this absolute path.
std::string file_address(const std::string& path);

}  // namespace collect::ctl
