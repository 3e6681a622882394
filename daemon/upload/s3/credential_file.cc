#include "daemon/upload/s3/credential_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <memory>

namespace collect::upload {
namespace {

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

}  // namespace

Result<Credentials> credentials_of_profile(std::string_view text, std::string_view profile,
                                           const std::string& path) {
  Credentials credentials;
  bool is_wanted = false;
  bool is_there = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = stripped(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      const size_t close = line.find(']');
      is_wanted = close != std::string_view::npos && stripped(line.substr(1, close - 1)) == profile;
      is_there |= is_wanted;
      continue;
    }
    const size_t equals = line.find('=');
    if (!is_wanted || equals == std::string_view::npos) continue;
    const std::string_view name = stripped(line.substr(0, equals));
    const std::string value(stripped(line.substr(equals + 1)));
    if (name == "aws_access_key_id") credentials.access_key_id = value;
    if (name == "aws_secret_access_key") credentials.secret_access_key = value;
    if (name == "aws_session_token") credentials.session_token = value;
  }
  const std::string place = fmt::format("{}: [{}] ", path, profile);
  if (!is_there) return Error{Code::kPermission, place + "is not there"};
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
    return Error{Code::kPermission, place + "needs aws_access_key_id and aws_secret_access_key"};
  }
  return credentials;
}

Result<std::string> read_secret_file(const std::string& path, size_t most_bytes) {
  const std::unique_ptr<std::FILE, FileClose> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Error{Code::kPermission, errno_error(errno, path).message};
  std::string text(most_bytes + 1, '\0');
  const size_t got = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get()) != 0) {
    return Error{Code::kPermission, errno_error(errno, path).message};
  }
  if (got > most_bytes) {
    return Error{Code::kLimit, fmt::format("{}: longer than {} bytes", path, most_bytes)};
  }
  text.resize(got);
  return text;
}

}  // namespace collect::upload
