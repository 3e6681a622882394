// `collectctl open` of one session: its page from a server in this process, so that every call can
// be asked for, however many there are.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/leftovers.h"

namespace collect::ctl {

struct ServedPage {
  std::string directory;    // of a session, absolute
  storage::Leftover made;   // what that is in, where it was made of another capture to be served
  bool can_change = false;  // it is not sealed
  bool no_browser = false;
  // So long after its last page was closed it ends: one is loaded again, or looked at elsewhere.
  std::chrono::milliseconds closed_after{60'000};
};

// Prints the address on `out`, starts the browser, and serves this user on loopback until no page
// is open any more; a signal of storage/fs/leftovers.h ends the program with 0 then. An error:
// nothing was printed, and nothing is served.
Status serve_page(ServedPage page, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
