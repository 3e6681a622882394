#include "daemon/web/static_files.h"

#include <algorithm>
#include <iterator>

#include "daemon/web/page_files.h"

namespace collect::web {
namespace {

constexpr StaticFile kFiles[] = {
    {"/", "text/html; charset=utf-8", kLiveHtml},
    {"/live.css", "text/css; charset=utf-8", kLiveCss},
    {"/live.js", "text/javascript; charset=utf-8", kLiveJs},
    {"/sessions.js", "text/javascript; charset=utf-8", kSessionsJs},
};

}  // namespace

const StaticFile* static_file(std::string_view path) {
  const auto* const found =
      std::find_if(std::begin(kFiles), std::end(kFiles),
                   [path](const StaticFile& file) { return file.path == path; });
  return found == std::end(kFiles) ? nullptr : found;
}

}  // namespace collect::web
