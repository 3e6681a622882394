#include "daemon/web/viewer_folder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "daemon/web/limits.h"

namespace collect::web {
namespace {

constexpr std::string_view kFirstFile = "index.html";
constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".wasm", "application/wasm"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".woff2", "font/woff2"},
};

std::string_view type_of(std::string_view path) {
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

}  // namespace

Result<ViewerFolder> ViewerFolder::open(const std::string& path) {
  auto folder = storage::RootedDirectory::open(path);
  if (!folder.ok()) return folder.error();
  if (!folder->look_at(kFirstFile).ok()) {
    return Error{Code::kNotFound, path + ": no unpacked Perfetto UI: it has no index.html"};
  }
  return ViewerFolder(std::move(*folder));
}

HttpAnswer ViewerFolder::serve(const HttpRequest& request) const {
  if (request.method != "GET") return error_answer(405, "these are files");
  std::string_view below = request.path().substr(1);
  if (below.empty()) below = kFirstFile;
  auto text = read(below);
  if (!text.ok()) {
    return text.code() == Code::kLimit ? error_answer(text.error())
                                       : error_answer(404, "no such file");
  }
  HttpAnswer answer;
  answer.is_foreign = true;
  answer.content_type = type_of(below);
  answer.body = std::move(*text);
  return answer;
}

Result<std::string> ViewerFolder::read(std::string_view below) const {
  const auto file = folder_.open_file(below, storage::FileUse::kRead);
  if (!file.ok()) return file.error();
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return errno_error(errno, folder_.path_of(below));
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes > kMaxViewerFileBytes) {
    return Error{Code::kLimit, fmt::format("{}: {} bytes", folder_.path_of(below), bytes)};
  }
  std::string text(bytes, '\0');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t got = ::read(file->get(), text.data() + at, text.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, folder_.path_of(below));
    if (got == 0) break;  // it became shorter
    at += static_cast<size_t>(got);
  }
  text.resize(at);
  return text;
}

}  // namespace collect::web
