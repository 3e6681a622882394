// Libraries of an app, copied from the phone: those whose functions a session has no names for
// (they are often there with their symbols in a debug build), and those whose code is to be
// changed.
#pragma once

#include <ostream>
#include <string>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/android/app/android_app.h"

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

  // Copies the libraries of a sealed session, by its directory on this machine. The folder with
  // what could be copied, named by build id; empty: there is nothing.
  std::string fetch(const std::string& session);
  // A file of the phone under its name. kAlreadyExists: one of that name was copied; kLimit; errors
  // of AdbDevice::pull().
  Result<std::string> fetch_file(const std::string& remote);

 private:
  Status make_folder();
  Status copy(const std::string& remote, const std::string& file);

  const AdbDevice& device_;
  const AndroidApp& app_;
  std::ostream& err_;
  std::string folder_;  // empty: not made yet
  uint64_t bytes_left_;
  size_t count_ = 0;
};

}  // namespace collect::ctl
