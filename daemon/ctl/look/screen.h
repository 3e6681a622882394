// The terminal as a page that is written again and again, and its keys one by one. Given back as it
// was, also when a signal ends the program.
//
// One thread.
#pragma once

#include <termios.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "storage/fs/leftovers.h"

namespace collect::ctl {

class Screen {
 public:
  // Standard input and `out` are the terminal.
  explicit Screen(std::ostream& out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void show(const std::vector<std::string>& lines);
  size_t columns() const;
  size_t rows() const;

 private:
  void give_back();

  std::ostream& out_;
  termios before_{};
  storage::EndingAction at_end_;
};

}  // namespace collect::ctl
