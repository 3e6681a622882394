// The user's browser.
#pragma once

#include <iosfwd>
#include <string>

namespace collect::ctl {

// Starts $BROWSER, else the desktop's where there is a display, with this address. False: none was
// started; `err` has the reason.
bool show_in_browser(const std::string& address, std::ostream& err);

}  // namespace collect::ctl
