#include "daemon/ctl/tui/page.h"

namespace collect::ctl::tui {

bool Page::find(const SearchText& text, bool forward) {
  const size_t count = size();
  for (size_t step = 1; step <= count; ++step) {
    const size_t row = (chosen_ + (forward ? step : count - step)) % count;
    if (is_section(row) || !text.is_in(searched(row))) continue;
    choose(row);
    return true;
  }
  return false;
}

size_t Page::scroll(size_t rows) {
  if (chosen_ < first_) first_ = chosen_;
  if (chosen_ >= first_ + rows) first_ = chosen_ + 1 - rows;
  const size_t last = size() > rows ? size() - rows : 0;
  first_ = std::min(first_, last);
  return first_;
}

}  // namespace collect::ctl::tui
