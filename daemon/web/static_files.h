// The files of the live page, which are parts of this program.
#pragma once

#include <string_view>

namespace collect::web {

struct StaticFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view text;
};

// Null: there is none at this path.
const StaticFile* static_file(std::string_view path);

}  // namespace collect::web
