// Changes of a session's files into the bucket, as segments below its part's prefix:
//
//   …/part=C-E/segments/000001/00000001, …/00000002.end
//
// The first number counts how often the copy was begun anew, the second the segments. What one
// request brought ends with `.end`: a reader takes all of it or nothing. UPLOAD.md "Segments".
//
// Each object is used on one thread; SegmentPositions by all of them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/retry.h"
#include "daemon/upload/s3_client.h"
#include "daemon/upload/segment.h"
#include "daemon/upload/segment_request.h"
#include "storage/fs.h"

namespace collect::upload {

inline constexpr char kSegmentsName[] = "segments/";  // behind a part's prefix

// Of one part. 100 GB, by their size; more are not written.
inline constexpr size_t kMaxSegments = 10'000'000;

struct SegmentName {
  uint32_t copy = 0;    // from 1
  uint64_t number = 0;  // from 1
  bool is_end = false;

  std::string text() const;  // "000001/00000002.end"
  static std::optional<SegmentName> parse(std::string_view text);
};

// Those of a part, in their order.
Result<std::vector<SegmentName>> list_segments(S3Client& client, Retries& retries,
                                               const std::string& prefix);
// All of a part that COMMIT covers: they are superseded.
Status remove_segments(S3Client& client, Retries& retries, const std::string& prefix);

// Where each session's next segment goes.
class SegmentPositions {
 public:
  struct Position {
    std::string prefix;  // of the part
    uint32_t copy = 0;
    uint64_t next = 1;
  };
  std::optional<Position> find(const std::string& session) const;
  void put(const std::string& session, Position position);
  void remove(const std::string& session);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Position> positions_;  // guarded by mutex_
};

class SegmentUpload {
 public:
  // They outlive it.
  SegmentUpload(S3Client& client, Retries& retries, storage::Fs& fs, std::string root,
                SegmentPositions& positions)
      : client_(client),
        retries_(retries),
        fs_(fs),
        root_(std::move(root)),
        positions_(positions) {}

  // Two requests of one session never at once. kUnsupported: the session has no process id, so it
  // has no place in a bucket. Any other error: ask again.
  Status send(const SegmentRequest& request);

 private:
  Result<SegmentPositions::Position> position_of(const SegmentRequest& request,
                                                 const storage::SessionPath& session);
  Result<bool> is_committed(const std::string& prefix);
  Status send_to(SegmentPositions::Position& position, const storage::SessionPath& session,
                 const SegmentRequest& request);
  Status add_file(const std::string& directory, const std::string& path,
                  const storage::ChangedFile& file, SegmentPositions::Position& position);
  Status add_bytes(storage::File& file, const std::string& path, uint64_t from, uint64_t to,
                   SegmentPositions::Position& position);
  Status make_room(SegmentPositions::Position& position);
  Status put(SegmentPositions::Position& position, bool is_end);

  S3Client& client_;
  Retries& retries_;
  storage::Fs& fs_;
  const std::string root_;
  SegmentPositions& positions_;
  SegmentBuilder builder_;
};

}  // namespace collect::upload
