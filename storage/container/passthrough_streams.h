// The streams of a session that have a file of their own: one file each, and one entry each in the
// manifest.
//
// Owned by its Session, used on the storage thread.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/container/passthrough_file.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

class PassthroughStreams {
 public:
  PassthroughStreams(Fs& fs, std::string directory) : fs_(fs), directory_(std::move(directory)) {}

  // Null: there is none of this kind yet. kIo: it can't be read.
  Result<PassthroughFile*> find(PassthroughKind kind) const;
  // Makes one, and its entry.
  Result<PassthroughFile*> create(PassthroughKind kind, Manifest& manifest);
  // The end of one: bytes that came and are no whole frames, and where and why.
  static void end(PassthroughKind kind, uint64_t refused_bytes, const std::string& problem,
                  Manifest& manifest);
  // The files of a session that is opened again; what is wrong with them goes into their entries
  // and into `problems`. kExhausted alone is an error: it says nothing of the file.
  Status reopen(Manifest& manifest, std::vector<std::string>* problems);

  Status sync();
  Status seal(bool durable);
  uint64_t bytes() const;
  // The entries are true.
  void refresh(Manifest& manifest) const;

 private:
  struct Stream {
    PassthroughKind kind{};
    std::unique_ptr<PassthroughFile> file;  // null: it can't be read
  };

  std::string path_of(PassthroughKind kind) const {
    return fmt::format("{}/{}", directory_, passthrough_file_name(kind));
  }
  Status reopen_file(Stream& stream, PassthroughStream& entry, std::vector<std::string>* problems);

  Fs& fs_;
  const std::string directory_;
  std::vector<Stream> streams_;  // same order as Manifest::passthrough_streams
};

}  // namespace collect::storage
