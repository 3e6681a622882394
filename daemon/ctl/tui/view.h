// `report --tui` without a terminal: keys in, lines out. Pages are on a stack; the lowest is the
// table of functions.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/tui/capture.h"
#include "daemon/ctl/tui/page.h"
#include "daemon/ctl/tui/screen_text.h"

namespace collect::ctl::tui {

// One thread.
class View {
 public:
  static constexpr size_t kLeastRows = 5;

  explicit View(std::unique_ptr<Capture> capture);

  // False: it was asked to end.
  bool press(const KeyPress& key);
  // As many as there are rows: title, heading, rows of the page, the whole name, keys.
  std::vector<Line> lines(size_t columns, size_t rows);

 private:
  Page& page() { return *pages_.back(); }
  void enter();
  void back();
  bool move(Key key);
  void press_prompt(const KeyPress& key);
  void search(bool forward);
  void press_letter(const std::string& letter);
  void open_function(uint64_t id);
  void open_graph();
  void open_calls();
  void choose_thread(const std::string& word);
  std::string title(size_t columns);
  Line foot(size_t columns);

  std::unique_ptr<Capture> all_;              // what was asked for
  std::unique_ptr<Capture> one_;              // a thread of it; null: all
  Capture* capture_;                          // the one that is shown
  std::string thread_name_;                   // of one_
  std::vector<std::unique_ptr<Page>> pages_;  // of capture_
  SearchText search_{""};
  std::string prompt_;  // what is typed behind /
  bool is_prompting_ = false;
  std::string message_;    // until the next key
  size_t page_rows_ = 10;  // of the last lines()
};

}  // namespace collect::ctl::tui
