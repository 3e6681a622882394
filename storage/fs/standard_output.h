// Standard output of a program that reports when it could not be written.
#pragma once

#include <array>
#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string_view>

namespace collect::storage {

// Takes the place of a stream's buffer (std::cout's) for its lifetime, and keeps the first error of
// writing descriptor 1. Once a write has failed nothing more is written, so the output is always a
// prefix of what it should be. One thread.
class StandardOutput final : public std::streambuf {
 public:
  explicit StandardOutput(std::ostream& stream);
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  // Writes what is left and closes the descriptor, because some file systems report a lack of space
  // only then. Returns the program's exit code: `code`, or 1 for 0 when the output is not whole.
  // That is reported on standard error ("PROGRAM: cannot write standard output: REASON"), except
  // when the reader of a pipe has gone (`| head`): it has what it wanted.
  int finish(std::string_view program, int code);

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 16;

  bool write_all(const char* text, size_t size);

  std::ostream& stream_;
  std::streambuf* const before_;
  std::array<char, kBufferBytes> buffer_;
  size_t used_ = 0;
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace collect::storage
