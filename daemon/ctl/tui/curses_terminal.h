// The terminal by ncurses: shows lines and reads keys. It is given back as it was at the end, also
// when a signal or a crash ends the program; while Ctrl-Z has stopped it, too (ncurses).
//
// One thread; there is one object.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ctl/tui/screen_text.h"
#include "formats/core/result.h"
#include "storage/fs/leftovers.h"

namespace collect::ctl::tui {

class CursesTerminal {
 public:
  // Of standard input and output. kUnsupported: TERM is a terminal without a cursor, or none that
  // is known.
  static Result<std::unique_ptr<CursesTerminal>> open(bool color);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  void show(const std::vector<Line>& lines);
  // In place of the last line, at once.
  void show_busy(const std::string& text);
  size_t columns() const;
  size_t rows() const;

  enum class Wait : uint8_t { kKey, kChanged, kClosed };
  // Waits for a key, another size of the terminal, or its end.
  Wait wait(KeyPress& key);

 private:
  explicit CursesTerminal(bool color);
  void put(const Line& line, int row);
  void give_back();
  // nullopt: nothing was pressed.
  std::optional<Wait> read_key(KeyPress& key);

  const bool color_;
  std::timed_mutex drawing_;  // held while ncurses is called
  storage::EndingAction at_end_;
};

}  // namespace collect::ctl::tui
