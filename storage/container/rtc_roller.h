// The RTC containers of one session: capture-000001.rtc, capture-000002.rtc, … Rolls by size and by
// age, and removes the oldest when together they are larger than the budget.
//
// Owned by its Session, used on the storage thread. Containers are beside the thread files and
// never endanger them: what goes wrong here ends the container, is reported once by take_problem(),
// and the session continues without.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/container/capture_writer.h"
#include "storage/fs/clock.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::storage {

class RtcRoller {
 public:
  RtcRoller(Fs& fs, std::string directory, const CaptureOptions& options, Durability durability,
            Clock& clock)
      : fs_(fs),
        directory_(std::move(directory)),
        options_(options),
        durability_(durability),
        clock_(clock) {}

  bool enabled() const { return options_.enabled && !failed_; }
  // The containers that the manifest of a reopened session names, and those that are there.
  void adopt(const std::vector<Container>& containers, uint64_t removed);

  // Begins the first container, or the next one when the present one is large or old enough.
  // `manifest` is true as of now. To be called before page() and passthrough(); the others write
  // nothing while no container is open, for what they say will be in the manifest that the next
  // one begins with. kExhausted: the next one can't be opened now; call it again.
  Status make_room(const Manifest& manifest);
  // Nothing comes for a while: closes the file of the open container.
  void release_file();
  // Opens it again, where something waits for it. kExhausted: not now.
  Status hold_file();
  bool unflushed() const { return unflushed_; }
  size_t open_files() const;
  // Whether make_room() would roll: the manifest need be made true only then.
  bool wants_room() const;
  // Ends the present container and begins another.
  Result<std::string> roll(const Manifest& manifest);

  void page(const Page& page);
  void passthrough(PassthroughKind kind, std::span<const Bytes> parts);
  void change(const Manifest& delta);
  void log(std::string_view line);
  void marker(const Marker& marker);
  void flush();
  // Ends the open container, if there is one; a later page begins the next.
  void end_container(const Manifest& manifest) { check(end(manifest)); }
  void finish(const Manifest& manifest);
  // Leaves the open container as it is, and writes nothing more.
  void abandon();

  // All that are there, oldest first; the last may be open.
  const std::vector<Container>& containers() const { return containers_; }
  uint64_t removed() const { return removed_; }
  uint64_t bytes() const { return finished_bytes_ + (writer_ != nullptr ? writer_->bytes() : 0); }
  // Why no more is written, once.
  std::optional<std::string> take_problem();

 private:
  void check(const Status& status);
  Status begin(const Manifest& manifest);
  Status end(const Manifest& manifest);
  void keep_budget();
  void note_size();

  Fs& fs_;
  const std::string directory_;
  const CaptureOptions options_;
  const Durability durability_;
  Clock& clock_;

  std::unique_ptr<FileSink> sink_;
  std::unique_ptr<CaptureWriter> writer_;  // null while none is open
  uint64_t opened_at_ns_ = 0;
  uint32_t last_number_ = 0;
  std::vector<Container> containers_;
  uint64_t removed_ = 0;
  uint64_t finished_bytes_ = 0;  // of all but the one that is written
  bool unflushed_ = false;
  bool failed_ = false;
  std::optional<std::string> problem_;
};

}  // namespace collect::storage
