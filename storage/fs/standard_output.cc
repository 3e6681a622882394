#include "storage/fs/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

namespace collect::storage {

StandardOutput::StandardOutput(std::ostream& stream)
    : stream_(stream), before_(stream.rdbuf(this)) {}

StandardOutput::~StandardOutput() {
  stream_.rdbuf(before_);
}

int StandardOutput::finish(std::string_view program, int code) {
  const bool was_used = used_ != 0;
  (void)sync();
  if (::close(STDOUT_FILENO) != 0 && error_ == 0 && errno != EINTR && was_used) error_ = errno;
  if (error_ == 0) return code;
  if (error_ != EPIPE) {
    std::cerr << program << ": cannot write standard output: " << std::strerror(error_) << "\n";
  }
  return code == 0 ? 1 : code;
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize size) {
  const auto bytes = static_cast<size_t>(size);
  if (error_ != 0) return 0;
  if (bytes > kBufferBytes - used_ && sync() != 0) return 0;
  if (bytes > kBufferBytes) return write_all(text, bytes) ? size : 0;
  std::memcpy(buffer_.data() + used_, text, bytes);
  used_ += bytes;
  return size;
}

StandardOutput::int_type StandardOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

int StandardOutput::sync() {
  const size_t bytes = used_;
  used_ = 0;
  return error_ == 0 && write_all(buffer_.data(), bytes) ? 0 : -1;
}

bool StandardOutput::write_all(const char* text, size_t size) {
  while (size != 0) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      error_ = errno;
      return false;
    }
    text += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace collect::storage
