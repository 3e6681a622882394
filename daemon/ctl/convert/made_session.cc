#include "daemon/ctl/convert/made_session.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

namespace collect::ctl {

namespace fs = std::filesystem;

Result<MadeSession> make_session(ConvertOptions capture, std::ostream& err) {
  auto scratch = storage::Leftover::made_by([]() -> Result<std::string> {
    std::string path = (fs::temp_directory_path() / "collectctl-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
  if (!scratch.ok()) return scratch.error();
  std::ostringstream sizes;
  capture.to = exports::Target::kAtf;
  capture.output = (fs::path(scratch->path()) / fs::path(capture.inputs.front()).stem()).string();
  if (convert(capture, sizes, err) == 2) {
    return Error{Code::kDamaged, "it could not be made a session"};
  }
  return MadeSession{capture.output, std::move(*scratch)};
}

}  // namespace collect::ctl
