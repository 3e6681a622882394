// A file whose bytes come from a peer: a collector, a store. It grows as NAME.part beside its name
// and takes the name when it is whole, so what has the name is never a piece. The peer has said how
// large it is: it never becomes larger, and nothing is begun for which the disk has no room.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

inline constexpr char kPartSuffix[] = ".part";

// What everything that one command takes from a peer may fill of a disk: what was free when it
// began, but kDefaultKeepFreeBytes. Counted by size, not by blocks: holes cost nothing on the disk,
// and a file of 2^62 bytes is no use to its readers.
class UntrustedSpace {
 public:
  // Counts on the disk of `directory`, which is there when the first bytes come. `fs` outlives it.
  UntrustedSpace(Fs& fs, std::string directory) : fs_(fs), directory_(std::move(directory)) {}

  // The peer has announced `bytes` more. kNoSpace: there is no room for them.
  Status expect(uint64_t bytes);
  // `bytes` are about to be written. kNoSpace.
  Status take(uint64_t bytes);

 private:
  Status look();

  Fs& fs_;
  const std::string directory_;
  std::optional<uint64_t> left_{};
  uint64_t unlooked_ = 0;  // taken since the system was asked: others fill the disk too
};

class UntrustedFile {
 public:
  // `announced`: its size; absent of a file that still grows, which only the disk bounds. `resume`:
  // what NAME.part has is its beginning, else it begins again. The directory is there; `space`
  // outlives it. kNoSpace: before a byte is written.
  static Result<UntrustedFile> open(Fs& fs, const std::string& path,
                                    std::optional<uint64_t> announced, UntrustedSpace& space,
                                    bool resume);

  uint64_t size() const { return size_; }
  // kDamaged: more than was announced; kNoSpace.
  Status append(Bytes bytes);
  // kDamaged: less than was announced; NAME.part stays. `durable`: also after a loss of power.
  Status finish(bool durable);
  // NAME.part goes.
  void discard();

 private:
  UntrustedFile(Fs& fs, std::string path, std::optional<uint64_t> announced, UntrustedSpace& space,
                std::unique_ptr<File> file, uint64_t size)
      : fs_(fs),
        path_(std::move(path)),
        announced_(announced),
        space_(space),
        file_(std::move(file)),
        size_(size) {}

  Fs& fs_;
  const std::string path_;
  const std::optional<uint64_t> announced_;
  UntrustedSpace& space_;
  std::unique_ptr<File> file_;
  uint64_t size_;
};

}  // namespace collect::storage
