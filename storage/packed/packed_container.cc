#include "storage/packed/packed_container.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/atf/writer.h"
#include "storage/container/capture_writer.h"
#include "storage/container/packed_lanes.h"
#include "storage/fs/whole_file.h"
#include "storage/rebuild/session_pages.h"

namespace collect::storage {
namespace {

// Of a stream of another format, which is read as a whole.
constexpr size_t kMaxPackedPassthrough = size_t{1} << 30;

Result<uint32_t> next_container(Fs& fs, const std::string& directory) {
  uint32_t number = 1;
  const auto names = fs.list_directory(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (const auto there = parse_container_name(name)) number = std::max(number, *there + 1);
  }
  if (number > kMaxContainerNumber) return Error{Code::kLimit, directory + ": too many containers"};
  return number;
}

// Streams of other formats, each as one object: the file is whole frames.
Status add_passthrough(Fs& fs, const std::string& directory, const Manifest& manifest,
                       CaptureWriter& capture) {
  for (const PassthroughStream& stream : manifest.passthrough_streams) {
    const std::string path = fmt::format("{}/{}", directory, passthrough_file_name(stream.kind));
    const auto bytes = read_whole_file(fs, path, kMaxPackedPassthrough);
    if (!bytes.ok()) return bytes.error();
    const Bytes part(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
    COLLECT_TRY(capture.passthrough(stream.kind, {&part, 1}));
  }
  return {};
}

// A file that was read once, for its records and its checksum.
struct ReadLane {
  std::string path;
  atf::Version version{};
  uint32_t expected = 0;  // as its footer says; 0: unchecked
  uint32_t checksum = 0;
};

// The file is whole, and has what the manifest counts; nothing where there is no file and no
// record.
Result<std::optional<LaneInput>> open_whole_lane(Fs& fs, const std::string& path, Lane lane,
                                                 const ManifestThread& thread) {
  const uint64_t counted = lane == Lane::kIndex ? thread.events : thread.detail_records;
  auto input = open_lane(fs, path, lane);
  if (!input.ok() && input.code() == Code::kNotFound && counted == 0) {
    return std::optional<LaneInput>();
  }
  if (!input.ok() && input.code() == Code::kNotFound) {
    return Error{
        Code::kDamaged,
        fmt::format("{}: is missing, with {} records that the manifest counts", path, counted)};
  }
  if (!input.ok()) return input.error();
  if (!input->checksum) {
    return Error{Code::kDamaged, path + ": it has no footer, or one that contradicts its header"};
  }
  if (input->count != counted) {
    return Error{Code::kDamaged, fmt::format("{}: has {} records, the manifest counts {}", path,
                                             input->count, counted)};
  }
  return std::optional(std::move(*input));
}

// Everything of the session as its files have it, pages of blocks that readers make at once.
Status fill_container(Fs& fs, const std::string& directory, const Manifest& manifest,
                      CaptureWriter& capture, const BytesDone& done) {
  std::vector<LanePages> lanes;
  std::map<std::pair<uint32_t, Lane>, ReadLane> read;  // by stream
  for (const ManifestThread& thread : manifest.threads) {
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      const std::string path = thread_file_path(directory, thread.id, lane);
      auto input = open_whole_lane(fs, path, lane, thread);
      if (!input.ok()) return input.error();
      if (!*input) continue;
      LaneInput& there = **input;
      read[{thread.stream_id, lane}] = {path, there.version, *there.checksum};
      there.source.thread = thread.id;
      there.source.stream_id = thread.stream_id;
      lanes.emplace_back(std::move(there.source), manifest, kPackedPageBytes);
    }
  }
  COLLECT_TRY(take_in_time_order(lanes, [&](const Page& page) {
    ReadLane& lane = read.at({page.stream_id, page.lane});
    lane.checksum = atf::section_checksum(lane.version, page.bytes, lane.checksum);
    const Status written = capture.page(page);
    return written.ok() ? done(page.bytes.size()) : written;
  }));
  for (const auto& [key, lane] : read) {
    if (lane.expected == 0 || lane.checksum == lane.expected) continue;
    return Error{Code::kDamaged, lane.path + ": its checksum does not fit its records"};
  }
  return {};
}

}  // namespace

Result<uint32_t> write_packed_container(Fs& fs, const SessionPath& session_path, Manifest& manifest,
                                        const BytesDone& done) {
  const std::string& directory = session_path.directory;
  const auto number = next_container(fs, directory);
  if (!number.ok()) return number;
  const Manifest whole = manifest_of_files(manifest);
  const std::string temporary = fmt::format("{}/{}", directory, kContainerTemporaryFile);
  if (fs.exists(temporary)) COLLECT_TRY(fs.remove_file(temporary));  // of an interrupted one
  auto file = fs.open(temporary, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  FileSink sink(fs, std::move(*file));
  auto capture = CaptureWriter::create(sink, whole, Packing::kSmall);
  Status written = capture.ok() ? Status() : Status(capture.error());
  if (written.ok()) written = fill_container(fs, directory, whole, **capture, done);
  if (written.ok()) written = add_passthrough(fs, directory, manifest, **capture);
  Manifest last = whole;
  last.passthrough_streams = manifest.passthrough_streams;
  if (written.ok()) written = (*capture)->finish(last);
  if (written.ok()) written = sink.sync();
  if (written.ok())
    written = fs.rename(temporary, fmt::format("{}/{}", directory, container_name(*number)));
  if (written.ok()) written = fs.sync_directory(directory);
  if (!written.ok()) {
    (void)fs.remove_file(temporary);
    return written.error();
  }
  manifest.containers = {{container_name(*number), "finished", (*capture)->bytes(),
                          (*capture)->first_ns(), (*capture)->last_ns()}};
  manifest.containers_removed = 0;
  for (size_t at = 0; at < manifest.threads.size(); ++at) {
    manifest.threads[at].stream_id = whole.threads[at].stream_id;
  }
  return number;
}

}  // namespace collect::storage
