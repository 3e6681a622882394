// Result<T>: a value, or an Error that says what happened in words and what the caller can do
// about it as a code. Bad input, bad peers and bad disks end here; programmer errors end in CHECK.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace collect {

// One code for each thing that a caller can do, not one for each thing that can go wrong.
enum class Code : uint8_t {
  kInvalidArgument,  // the caller's own words are off: correct them
  kNotFound,         // look elsewhere, or create it
  kAlreadyExists,    // use the one that is there, or choose another name
  kDamaged,          // the bytes contradict themselves: keep what holds, report the rest
  kTruncated,        // the input ends too early: wait for more, or keep what came
  kUnsupported,      // a version or feature that this build does not know
  kLimit,            // a named limit was exceeded: raise it, or refuse
  kExhausted,        // this machine is out of descriptors or memory: try again later, blame no one
  kNoSpace,          // free disk space, or stop writing
  kIo,               // the device or the operating system failed
  kPermission,       // ask for access
  kUnavailable,      // the peer or service is not there now: try again
  kCancelled,        // someone ended it on purpose
};

// The code's name as the terminal and the logs show it, for example "no space".
std::string_view code_name(Code code);

struct Error {
  Code code;
  std::string message;  // a sentence that names the file or peer and, for bytes, the offset
};

// "/x/index.atf: write at 4096: No space left on device"; of damaged and truncated input, its
// code's name comes first: "damaged: at 4096: …".
std::string to_string(const Error& error);

// The error for a failed system call: maps errno to a code, appends its text.
Error errno_error(int error_number, std::string what);

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// Ends the process loudly on a programmer error. Never for anything that came from outside.
#define COLLECT_CHECK(condition)                                               \
  do {                                                                         \
    if (!(condition)) ::collect::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    COLLECT_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    COLLECT_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    COLLECT_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    COLLECT_CHECK(!ok());
    return std::get<1>(state_);
  }
  Code code() const { return error().code; }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    COLLECT_CHECK(!ok());
    return *error_;
  }
  Code code() const { return error().code; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Hands an error up: `COLLECT_TRY(fs.sync(file));`
#define COLLECT_TRY(expression)                                      \
  do {                                                               \
    auto collect_try_result = (expression);                          \
    if (!collect_try_result.ok()) return collect_try_result.error(); \
  } while (false)

}  // namespace collect
