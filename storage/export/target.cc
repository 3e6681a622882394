#include "storage/export/target.h"

namespace collect::exports {

std::string_view name_of(Target target) {
  if (!is_view(target)) return read::capture_kind_name(static_cast<read::CaptureKind>(target));
  return kViewNames[static_cast<size_t>(target) - static_cast<size_t>(kFirstView)];
}

std::string view_words() {
  std::string words;
  for (size_t i = 0; i < kViewNames.size(); ++i) {
    if (i != 0) words += i + 1 == kViewNames.size() ? " or " : ", ";
    words += kViewNames[i];
  }
  return words;
}

}  // namespace collect::exports
