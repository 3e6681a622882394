#include "storage/packed/found_lanes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/atf/layout.h"
#include "storage/container/capture_layout.h"
#include "storage/container/container_pages.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

// The pages of one container that each thread file consists of.
class Finder {
 public:
  Finder(const Manifest& manifest, uint32_t container) {
    for (const ManifestThread& thread : manifest.threads) {
      threads_[thread.stream_id] = thread.id;
      for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
        PackedLane& found = lanes_[{thread.id, lane}];
        found.thread = thread.id;
        found.lane = lane;
        found.container = container;
      }
    }
  }

  Status take(const rtc::Object& object, const ObjectPlace& place) {
    const std::string& stream = object.stream->name;
    if (stream != kIndexPagesStream && stream != kDetailPagesStream) return {};
    if (place.offset <= last_) return {};  // windows overlap
    last_ = place.offset;
    uint8_t head[sizeof(PageHeader)];
    size_t had = 0;
    for (const Bytes part : object.fragments()) {
      const size_t bytes = std::min(part.size(), sizeof head - had);
      std::copy_n(part.begin(), bytes, head + had);
      had += bytes;
    }
    if (had < sizeof head) return {};
    const auto page = load_le<PageHeader>(head);
    const auto thread = threads_.find(page.stream_id);
    if (thread == threads_.end() || page.record_count == 0) return {};
    const auto found = lanes_.find({thread->second, page.lane});
    if (found == lanes_.end()) return {};
    found->second.pieces.push_back(
        {place.offset, static_cast<uint32_t>(place.end - place.offset), page.raw_bytes});
    return {};
  }

  // The lane of a thread that the manifest names, as far as it was found.
  PackedLane take_lane(uint32_t thread, Lane lane) { return std::move(lanes_.at({thread, lane})); }

 private:
  std::map<uint32_t, uint32_t> threads_;                   // by stream
  std::map<std::pair<uint32_t, Lane>, PackedLane> lanes_;  // by thread
  uint64_t last_ = 0;                                      // offset of the last page
};

// What the file has around its records, and that the pieces are as many bytes.
Status measure(Fs& fs, const std::string& path, PackedLane& lane) {
  const auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  const auto bytes = (*file)->size();
  if (!bytes.ok()) return bytes.error();
  lane.file_bytes = *bytes;
  uint64_t records = 0;
  for (const PackedPiece& piece : lane.pieces) records += piece.bytes;
  const uint64_t around = *bytes - std::min(*bytes, records);
  const bool fits = around >= atf::kEventsOffset && around <= kMaxPackedEndBytes;
  lane.head.resize(atf::kEventsOffset);
  lane.tail.resize(fits ? around - atf::kEventsOffset : 0);
  if (!fits || !lane.place_pieces()) {
    return Error{Code::kUnsupported, fmt::format("{}: the containers have {} bytes of records, the "
                                                 "file has {} with its header and footer",
                                                 path, records, *bytes)};
  }
  for (auto [part, offset] :
       {std::pair(&lane.head, uint64_t{0}), std::pair(&lane.tail, *bytes - lane.tail.size())}) {
    const auto got = (*file)->read_at(offset, *part);
    if (!got.ok()) return got.error();
    if (*got != part->size()) return differs_from_containers(path, offset);
  }
  return {};
}

}  // namespace

Error differs_from_containers(const std::string& path, uint64_t offset) {
  return {
      Code::kDamaged,
      fmt::format("{}: at {}: not what the containers have; nothing was removed", path, offset)};
}

Result<std::vector<PackedLane>> find_lanes(Fs& fs, const std::string& directory,
                                           const Manifest& manifest, uint32_t container) {
  Finder finder(manifest, container);
  COLLECT_TRY(read_container_objects(
      fs, directory, container, [&finder](const rtc::Object& object, const ObjectPlace& place) {
        return finder.take(object, place);
      }));
  std::vector<PackedLane> lanes;
  for (const ManifestThread& thread : manifest.threads) {
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      const std::string path = thread_file_path(directory, thread.id, lane);
      if (!fs.exists(path)) continue;
      PackedLane& one = lanes.emplace_back(finder.take_lane(thread.id, lane));
      COLLECT_TRY(measure(fs, path, one));
    }
  }
  std::ranges::sort(lanes, {},
                    [](const PackedLane& one) { return std::pair(one.thread, one.lane); });
  return lanes;
}

}  // namespace collect::storage
