// The line on which a person sees that something happens.
#pragma once

#include <ostream>
#include <string>

#include "daemon/ctl/terminal/terminal.h"
#include "daemon/upload/store.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {

class StoreLine {
 public:
  StoreLine(std::ostream& err, bool wanted) : err_(err), wanted_(wanted) {}
  ~StoreLine() { end(); }

  void show(const std::string& words) {
    if (!wanted_) return;
    restart_line(err_);
    err_ << printable_sentence(words) << std::flush;
    shown_ = true;
  }
  void end() {
    if (shown_) restart_line(err_);
    err_.flush();
    shown_ = false;
  }

 private:
  std::ostream& err_;
  const bool wanted_;
  bool shown_ = false;
};

// Says on the line what is tried again, which may take some seconds.
inline Result<std::unique_ptr<upload::Store>> open_store(const upload::StoreRequest& request,
                                                         StoreLine& line) {
  return upload::Store::open(request.location, [&line](const Error& error) {
    line.show(error.message + "; trying again …");
  });
}

}  // namespace collect::ctl
