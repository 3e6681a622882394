#include "daemon/ctl/control/connection/credential_files.h"

#include <fmt/core.h>

#include <cerrno>
#include <fstream>

namespace collect::ctl {
namespace {

constexpr size_t kMaxPemBytes = 1u << 20;
constexpr size_t kMaxTokenBytes = 256;

}  // namespace

Result<std::string> read_pem(const char* option, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxPemBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!text.empty()) return text;
  const Error error = errno_error(errno == 0 ? EIO : errno, path);
  return Error{error.code, fmt::format("{}: {}", option, error.message)};
}

Result<std::string> read_token(const char* option, const std::string& path) {
  Result<std::string> token = read_pem(option, path);
  if (!token.ok()) return token.error();
  while (token->ends_with('\n') || token->ends_with('\r')) token->pop_back();
  for (const char c : *token) {
    if (c < 0x20 || c > 0x7e) token->clear();
  }
  if (!token->empty() && token->size() <= kMaxTokenBytes) return token;
  return Error{Code::kInvalidArgument,
               fmt::format("{}: {}: a token has 1 to {} printable characters on one line", option,
                           path, kMaxTokenBytes)};
}

}  // namespace collect::ctl
