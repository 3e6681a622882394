#include "formats/wtf/binary/string_table.h"

#include <algorithm>

namespace collect::wtf {

void StringTable::assign(Bytes bytes) {
  text_ = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  starts_.clear();
  end_ = 0;
  over_limit_ = false;
  size_t at = 0;
  while (at < text_.size()) {
    if (starts_.size() == kMaxStrings || at > UINT32_MAX) {
      over_limit_ = true;
      return;
    }
    starts_.push_back(static_cast<uint32_t>(at));
    end_ = std::min(text_.find('\0', at), text_.size());
    at = end_ + 1;
  }
}

}  // namespace collect::wtf
