#include "storage/container/capture_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/rtc/meta/value.h"
#include "storage/container/capture_layout.h"

namespace collect::storage {
namespace {

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

rtc::StreamInfo described(std::string_view name, std::string_view format, bool timed) {
  rtc::StreamInfo info;
  info.name = name;
  info.format = rtc::Format::parse(format);
  if (timed) info.clock = kClockStream;
  return info;
}

std::string gap_text(const Page& page) {
  return nlohmann::ordered_json{{"stream_id", page.stream_id},
                                {"lane", lane_name(page.lane)},
                                {"before_record", page.first_seq},
                                {"lost_total", page.lost_total},
                                {"first_ns", page.lost_first_ns},
                                {"last_ns", page.lost_last_ns},
                                {"reasons", lost_reason_names(page.lost_reasons)}}
      .dump();
}

}  // namespace

Status FileSink::open() {
  if (file_ != nullptr) return {};
  auto file = fs_.open(path_, OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  return {};
}

Status FileSink::sync() {
  COLLECT_TRY(open());
  return file_->sync();
}

Status FileSink::write(Bytes bytes) {
  COLLECT_TRY(open());
  const Bytes parts[] = {bytes};
  COLLECT_TRY(file_->write_at(size_, parts));
  size_ += bytes.size();
  return {};
}

Result<std::unique_ptr<CaptureWriter>> CaptureWriter::create(ByteSink& sink,
                                                             const Manifest& manifest,
                                                             Packing packing) {
  auto writer = rtc::Writer::create(sink);
  if (!writer.ok()) return writer.error();
  std::unique_ptr<CaptureWriter> capture(new CaptureWriter(std::move(*writer), packing));
  COLLECT_TRY(capture->open_streams(manifest));
  COLLECT_TRY(capture->text(capture->manifest_, manifest_to_json(manifest)));
  return capture;
}

Status CaptureWriter::open_streams(const Manifest& manifest) {
  const SessionIdentity& identity = manifest.identity;
  // The device's own idea of the time of day; without one the clock counts from nowhere.
  const bool has_epoch = identity.start_unix_ns > identity.start_ns;
  rtc::StreamInfo clock = described(kClockStream, "uint64le", false);
  clock.is_clock = true;
  clock.gain = rtc::Decimal{};
  clock.gain->mantissa = 1;
  clock.gain->exponent = -9;
  if (has_epoch) {
    epoch_offset_ns_ = static_cast<int64_t>(identity.start_unix_ns - identity.start_ns);
    clock.offset = rtc::Decimal{};
    clock.offset->mantissa = epoch_offset_ns_;
    clock.offset->exponent = -9;
  }
  const std::pair<uint64_t*, rtc::StreamInfo> streams[] = {
      {&clock_, std::move(clock)},
      {&manifest_, described(kManifestStream, "json", false)},
      {&changes_, described(kChangesStream, "json", true)},
      {&index_pages_, described(kIndexPagesStream, "raw", true)},
      {&detail_pages_, described(kDetailPagesStream, "raw", true)},
      {&gaps_, described(kGapsStream, "json", true)},
      {&log_, described(kLogStream, "utf-8", true)},
      {&markers_, described(kMarkersStream, "annotate/utf-8", false)},
  };
  for (const auto& [id, info] : streams) {
    auto opened = writer_.open_stream(info);
    if (!opened.ok()) return opened.error();
    *id = *opened;
  }
  return {};
}

Status CaptureWriter::text(uint64_t stream, std::string_view text) {
  return writer_.write(stream, bytes_of(text));
}

// An object has the time of the latest record so far, so that a seek to a time misses no page
// with a record of that time or later.
Status CaptureWriter::tick(uint64_t ns) {
  if (ns <= now_ns_) return {};
  now_ns_ = ns;
  uint8_t value[sizeof ns];
  store_le(value, ns);
  return writer_.write(clock_, value);
}

Status CaptureWriter::page(const Page& page) {
  COLLECT_TRY(tick(page.last_ns));
  if (page.record_count != 0) {
    first_ns_ = first_ns_ == 0 ? page.first_ns : std::min(first_ns_, page.first_ns);
    last_ns_ = std::max(last_ns_, page.last_ns);
  }
  if (page.lost_reasons != 0) COLLECT_TRY(text(gaps_, gap_text(page)));
  PageHeader header = page;
  header.codec = Codec::kRaw;
  header.raw_bytes = static_cast<uint32_t>(page.bytes.size());
  Bytes bytes = page.bytes;
  if (const PackedPage packed = pack_page(page, packing_); !packed.bytes.empty()) {
    header.codec = packed.codec;
    bytes = packed.bytes;
  }
  const uint64_t stream = page.lane == Lane::kIndex ? index_pages_ : detail_pages_;
  uint8_t head[sizeof header];
  store_le(head, header);
  COLLECT_TRY(writer_.write(stream, head, !bytes.empty()));
  return bytes.empty() ? Status() : writer_.write(stream, bytes);
}

Status CaptureWriter::passthrough(PassthroughKind kind, std::span<const Bytes> parts) {
  std::optional<uint64_t>& stream = passthrough_[static_cast<size_t>(kind)];
  if (!stream) {
    auto opened = writer_.open_stream(described(passthrough_kind_name(kind), "raw", false));
    if (!opened.ok()) return opened.error();
    stream = *opened;
  }
  for (size_t at = 0; at < parts.size(); ++at) {
    COLLECT_TRY(writer_.write(*stream, parts[at], at + 1 != parts.size()));
  }
  return {};
}

Status CaptureWriter::change(const Manifest& delta) {
  return text(changes_, manifest_delta_to_json(delta));
}

Status CaptureWriter::log(std::string_view line) {
  return text(log_, line);
}

Status CaptureWriter::marker(const Marker& marker) {
  const int64_t at_ns = static_cast<int64_t>(marker.at_ns) + epoch_offset_ns_;
  std::vector<uint8_t> object(rtc::kTimespecBytes);
  rtc::encode_timespec_ns(
      static_cast<uint64_t>(std::max<int64_t>(at_ns, 0)),
      std::span<uint8_t, rtc::kTimespecBytes>(object.data(), rtc::kTimespecBytes));
  object.insert(object.end(), marker.text.begin(), marker.text.end());
  return writer_.write(markers_, object);
}

Status CaptureWriter::finish(const Manifest& manifest) {
  COLLECT_TRY(text(manifest_, manifest_to_json(manifest)));
  return writer_.finish();
}

}  // namespace collect::storage
