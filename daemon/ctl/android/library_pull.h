// The libraries of an app whose functions a session has no names for, copied from the phone: they
// are often there with their symbols in a debug build.
#pragma once

#include <ostream>
#include <string>

#include "daemon/ctl/android/adb_device.h"
#include "daemon/ctl/android/android_app.h"

namespace collect::ctl {

inline constexpr size_t kMaxPulledLibraries = 64;
inline constexpr uint64_t kMaxPulledBytes = uint64_t{1} << 30;

class LibraryPull {
 public:
  // At most so many bytes, all together.
  LibraryPull(const AdbDevice& device, const AndroidApp& app, std::ostream& err,
              uint64_t most_bytes = kMaxPulledBytes)
      : device_(device), app_(app), err_(err), bytes_left_(most_bytes) {}
  ~LibraryPull();  // removes them
  LibraryPull(const LibraryPull&) = delete;
  LibraryPull& operator=(const LibraryPull&) = delete;

  // Of a sealed session's directory on this machine. The folder with what could be copied, named
  // by build id; empty: there is nothing.
  std::string fetch(const std::string& session);

 private:
  Status make_folder();

  const AdbDevice& device_;
  const AndroidApp& app_;
  std::ostream& err_;
  std::string folder_;  // empty: not made yet
  uint64_t bytes_left_;
  size_t count_ = 0;
};

}  // namespace collect::ctl
