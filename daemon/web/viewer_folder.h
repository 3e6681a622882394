// The files of an unpacked Perfetto UI, for machines that reach no ui.perfetto.dev. They are
// another program's, so they are served at an address of their own: another origin, whose scripts
// reach nothing of the live page.
//
// On the server's thread.
#pragma once

#include <string>

#include "daemon/web/http/http_answer.h"
#include "daemon/web/http/http_request.h"
#include "formats/core/result.h"
#include "storage/fs/rooted_directory.h"

namespace collect::web {

class ViewerFolder {
 public:
  // kNotFound: no index.html is in it.
  static Result<ViewerFolder> open(const std::string& path);

  // A file below the folder, reached through no link; 404 for everything else.
  HttpAnswer serve(const HttpRequest& request) const;

 private:
  explicit ViewerFolder(storage::RootedDirectory folder) : folder_(std::move(folder)) {}
  Result<std::string> read(std::string_view below) const;

  storage::RootedDirectory folder_;
};

}  // namespace collect::web
