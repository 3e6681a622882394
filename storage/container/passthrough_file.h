// The file of a stream, stream.dial9 or switches.bin, while it grows: the stream's bytes as they
// came, whole frames and nothing else, so that other programs open it at any moment.
//
// Owned by its Session, used on the storage thread. After a failed write the file is cut back to
// the bytes that were counted, as lane_file.h does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

class PassthroughFile {
 public:
  PassthroughFile(Fs& fs, PassthroughKind kind, std::string path)
      : fs_(fs), kind_(kind), path_(std::move(path)) {}

  Status create();
  // Opens the file that is there and reads it through; everything behind its last whole frame is
  // cut off. A sealed one is whole, and stays as it is.
  Status reopen();

  // Whole frames, as the caller knows.
  Status append(std::span<const Bytes> parts);
  Status sync();  // after an error it fails for good
  // The file has the length that is counted, synced when it shall be. It gets no footer: it is
  // another format's file.
  Status seal(bool durable);

  uint64_t bytes() const { return bytes_; }
  // By reopen: what did not hold, and why.
  uint64_t cut_bytes() const { return cut_bytes_; }
  const std::string& cut_reason() const { return cut_reason_; }

 private:
  Status restore_length();
  Status scan_dial9(uint64_t size);
  Status scan_switches(uint64_t size);

  Fs& fs_;
  const PassthroughKind kind_;
  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
  uint64_t cut_bytes_ = 0;
  std::string cut_reason_;
  bool length_uncertain_ = false;  // a write failed, and cutting the file back did too
  bool unsynced_ = false;
  Status sync_failure_;
};

}  // namespace collect::storage
