// One RTC container of a session while it grows. Owned by an RtcRoller, used on the storage thread.
// An error ends the container: what was written stays readable.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/core/byte_sink.h"
#include "formats/rtc/writer.h"
#include "storage/container/page_packing.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::storage {

// Appends to a file, which may be closed between two writes.
class FileSink final : public ByteSink {
 public:
  FileSink(Fs& fs, std::unique_ptr<File> file)
      : fs_(fs), path_(file->path()), file_(std::move(file)) {}
  Status write(Bytes bytes) override;
  Status sync();
  Status open();
  bool is_open() const { return file_ != nullptr; }
  void close() { file_.reset(); }  // the next use opens the file again

 private:
  Fs& fs_;
  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
};

class CaptureWriter {
 public:
  // Begins a container with the whole manifest. The sink outlives it.
  static Result<std::unique_ptr<CaptureWriter>> create(ByteSink& sink, const Manifest& manifest,
                                                       Packing packing = Packing::kQuick);

  // A page that was stored.
  Status page(const Page& page);
  // Whole frames of a stream of another format: one object, however many parts.
  Status passthrough(PassthroughKind kind, std::span<const Bytes> parts);
  // A manifest that holds only what is new.
  Status change(const Manifest& delta);
  Status log(std::string_view line);
  Status marker(const Marker& marker);
  Status flush() { return writer_.flush(); }
  // The whole manifest once more, and the end.
  Status finish(const Manifest& manifest);

  uint64_t bytes() const { return writer_.position(); }
  uint64_t bytes_after_finish() const { return writer_.position_after_finish(); }
  uint64_t first_ns() const { return first_ns_; }  // of the records; 0 without any
  uint64_t last_ns() const { return last_ns_; }

 private:
  CaptureWriter(rtc::Writer writer, Packing packing)
      : writer_(std::move(writer)), packing_(packing) {}
  Status open_streams(const Manifest& manifest);
  Status tick(uint64_t ns);
  Status text(uint64_t stream, std::string_view text);

  rtc::Writer writer_;
  const Packing packing_;
  uint64_t manifest_ = 0, changes_ = 0, clock_ = 0, index_pages_ = 0, detail_pages_ = 0, gaps_ = 0,
           log_ = 0, markers_ = 0;  // ids
  // Opened at their first bytes: few sessions have any.
  std::optional<uint64_t> passthrough_[std::size(kPassthroughKinds)];
  uint64_t now_ns_ = 0;          // the clock's last value
  int64_t epoch_offset_ns_ = 0;  // since the epoch = device clock + this
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
};

}  // namespace collect::storage
