#include "storage/container/container_pages.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "formats/core/crc32.h"
#include "formats/rtc/read/reader.h"
#include "proto/wire/page_codec.h"
#include "storage/container/capture_layout.h"
#include "storage/container/page_packing.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr size_t kWindowBytes = size_t{32} << 20;
// More than the largest page with what may be between its frames.
constexpr size_t kOverlapBytes = size_t{8} << 20;
static_assert(kOverlapBytes >= kMaxPageBytes + kMaxPageBytes / 2);

Status read_window(Bytes window, ObjectPlace begin, const OnObject& on_object) {
  rtc::ReaderOptions options;
  options.verify_crc = false;  // each page has its own
  auto reader = rtc::Reader::open(window, options);
  if (!reader.ok()) return {};
  rtc::Object object;
  while (reader->next(object)) {
    COLLECT_TRY(on_object(
        object, {begin.container, begin.offset + object.offset, begin.offset + reader->offset()}));
  }
  return {};
}

// Those of all containers, oldest first.
Status read_objects(Fs& fs, const std::string& directory, const OnObject& on_object) {
  auto names = fs.list_directory(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const auto number = parse_container_name(name);
    if (number) COLLECT_TRY(read_container_objects(fs, directory, *number, on_object));
  }
  return {};
}

}  // namespace

Result<Page> captured_page(Bytes object, std::vector<uint8_t>& unpacked, MutableBytes place) {
  if (object.size() < sizeof(PageHeader)) {
    return Error{Code::kDamaged, "a page without its header"};
  }
  Page page{load_le<PageHeader>(object.data())};
  Bytes sent = object.subspan(sizeof(PageHeader));
  const auto codec = static_cast<uint8_t>(page.codec);
  page.codec = static_cast<Codec>(codec & ~kCompressedBlocks);
  if (page.lane > Lane::kDetail || !wire::encodes(page.codec, page.lane)) {
    return Error{Code::kDamaged, "not the header of a page"};
  }
  const auto damaged = [&](const char* why) {
    return Error{Code::kDamaged, fmt::format("the page of stream {} at record {}{}", page.stream_id,
                                             page.first_seq, why)};
  };
  if ((codec & kCompressedBlocks) != 0) {
    const auto blocks = decompress_blocks(sent, std::min<size_t>(page.raw_bytes, kMaxPageBytes));
    if (!blocks) return damaged(" cannot be decompressed");
    sent = *blocks;
  }
  page.bytes = sent;
  if (page.codec != Codec::kRaw) {
    const bool has_place = !place.empty() && place.size() == page.raw_bytes;
    const bool is_whole =
        has_place ? unpack_page(page, sent, place) : unpack_page(page, sent, unpacked);
    if (!is_whole) return damaged(" cannot be unpacked");
    page.codec = Codec::kRaw;
    page.bytes = has_place ? Bytes(place) : Bytes(unpacked);
  }
  if (crc32c(page.bytes) != page.bytes_crc32c) return damaged(" does not have its checksum");
  return page;
}

Status read_container_objects(Fs& fs, const std::string& directory, uint32_t container,
                              const OnObject& on_object) {
  const auto file =
      fs.open(fmt::format("{}/{}", directory, container_name(container)), OpenMode::kRead);
  if (!file.ok()) return file.code() == Code::kExhausted ? Status(file.error()) : Status();
  std::vector<uint8_t> window(kWindowBytes);
  for (uint64_t begin = 0;; begin += kWindowBytes - kOverlapBytes) {
    const auto got = (*file)->read_at(begin, window);
    if (!got.ok()) return {};  // a second copy that cannot be read is none
    COLLECT_TRY(read_window(Bytes(window).first(*got), {container, begin, begin}, on_object));
    if (*got < window.size()) return {};
  }
}

Status read_container_pages(Fs& fs, const std::string& directory,
                            const std::function<Status(const Page&)>& on_page) {
  std::vector<uint8_t> unpacked;
  const auto take = [&](const rtc::Object& object, const ObjectPlace&) -> Status {
    const std::string& stream = object.stream->name;
    if (stream != kIndexPagesStream && stream != kDetailPagesStream) return {};
    const auto page = captured_page(object.payload(), unpacked);
    return page.ok() ? on_page(*page) : Status();
  };
  return read_objects(fs, directory, take);
}

Result<std::optional<Manifest>> newest_container_manifest(Fs& fs, const std::string& directory) {
  std::optional<Manifest> newest;
  const auto take = [&](const rtc::Object& object, const ObjectPlace&) -> Status {
    const bool is_whole = object.stream->name == kManifestStream;
    if (!is_whole && object.stream->name != kChangesStream) return {};
    const Bytes json = object.payload();
    auto manifest = manifest_from_json({reinterpret_cast<const char*>(json.data()), json.size()});
    if (!manifest.ok()) return {};
    if (is_whole) {
      newest = std::move(*manifest);
    } else if (newest) {
      for (const ModuleInfo& module : manifest->modules) {
        const bool is_known = std::ranges::any_of(newest->modules, [&](const ModuleInfo& one) {
          return one.module_id == module.module_id && one.loaded_ns == module.loaded_ns;
        });
        if (!is_known) newest->modules.push_back(module);
      }
    }
    return {};
  };
  COLLECT_TRY(read_objects(fs, directory, take));
  return newest;
}

}  // namespace collect::storage
