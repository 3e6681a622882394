#include "tests/daemon/ctl/mutated/mutation.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/atf/writer.h"
#include "formats/core/bytes.h"
#include "formats/core/crc32.h"
#include "formats/rtc/layout.h"
#include "formats/wtf/layout.h"
#include "proto/wire/frame_encoder.h"

namespace collect::ctl::testing {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 18;  // of a mutated file

// Values at which decoders err.
uint64_t awkward(uint64_t dice, uint64_t size, uint64_t old) {
  const uint64_t values[] = {0,          1,          size,       size - 1,   size + 1,
                             old + 1,    old - 1,    old * 2,    0x7F,       0x80,
                             0xFF,       0xFFFF,     0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                             0xFFFFFFFE, 1ull << 40, ~0ull,      ~0ull >> 1, 1ull << 63,
                             old ^ 1,    dice >> 32, dice,       64,         32};
  return values[dice % std::size(values)];
}

// Somewhere in the document.
json* any_place(json& document, std::mt19937_64& random) {
  json* place = &document;
  for (int depth = 0; depth < 6 && place->is_structured() && !place->empty(); ++depth) {
    if (depth != 0 && random() % 3 == 0) break;
    auto next = place->begin();
    std::advance(next, static_cast<std::ptrdiff_t>(random() % place->size()));
    place = &*next;
  }
  return place;
}

json awkward_value(std::mt19937_64& random, const json& document) {
  switch (random() % 12) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return ~0ull;
    case 3:
      return 1e308;
    case 4:
      return "";
    case 5:
      return std::string(random() % 5000, 'x');
    case 6:
      return "../../../etc/passwd\x1b[2J\n\xC2\x9B\xE2\x80\xAE";
    case 7:
      return json::array({json::array(), json::object(), 1.5});
    case 8:
      return json::object({{"\x1b[31m\n", 1}});
    case 9:
      return 1ull << (random() % 64);
    case 10:
      return document;  // within itself
    default:
      return "0x" + std::string(random() % 20, 'f');
  }
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"atf1",     "atf2",  "rtc",       "wtf",
                                    "wtf_json", "dial9", "wire_pages"};
  return kNames[static_cast<size_t>(kind)];
}

Capture Mutator::mutation(uint64_t number) {
  random_.seed(seed_ * 0x9E3779B97F4A7C15ull + number * 0xBF58476D1CE4E5B9ull + 1);
  Capture capture = captures_[below(captures_.size())];
  if (capture.files.size() > 1 && one_in(4)) change_files(capture);
  if (capture.files.empty()) return capture;
  auto file = capture.files.begin();
  std::advance(file, static_cast<std::ptrdiff_t>(below(capture.files.size())));
  Octets& bytes = file->second;
  const bool is_json = file->first == "manifest.json" || kind_ == Kind::kWtfJson;
  const uint64_t changes = 1 + below(4);
  for (uint64_t i = 0; i < changes; ++i) {
    if (is_json && !one_in(3)) {
      change_json(bytes);
    } else if (one_in(3)) {
      change_bytes(bytes);
    } else if (one_in(2)) {
      change_number(bytes);
    } else {
      move_range(bytes);
    }
  }
  if (bytes.size() > kMaxBytes) bytes.resize(kMaxBytes);
  if (!one_in(8)) repair(bytes);
  const bool is_file = capture.files.size() == 1 && file->first == kSingleFile;
  if (is_file && kind_ != Kind::kWirePages && one_in(8)) bytes = zipped(bytes);
  return capture;
}

void Mutator::change_bytes(Octets& bytes) {
  if (bytes.empty()) return;
  switch (below(3)) {
    case 0:
      for (uint64_t i = 1 + below(8); i > 0; --i) {
        bytes[below(bytes.size())] ^= static_cast<uint8_t>(1u << below(8));
      }
      break;
    case 1:
      for (uint64_t i = 1 + below(8); i > 0; --i) {
        bytes[below(bytes.size())] = static_cast<uint8_t>(random_());
      }
      break;
    default: {
      const size_t from = below(bytes.size());
      const size_t count = std::min<size_t>(bytes.size() - from, 1 + below(64));
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), count,
                  static_cast<uint8_t>(one_in(2) ? 0 : random_()));
    }
  }
}

// A number of 1 to 8 bytes: a length, a count, an offset, an id; or two of them exchanged.
void Mutator::change_number(Octets& bytes) {
  const size_t width = size_t{1} << below(4);
  if (bytes.size() < width) return;
  const size_t places = bytes.size() - width + 1;
  // Most numbers that matter stand near the front or the end, at multiples of their width.
  const auto place = [&] {
    size_t at = one_in(3)   ? below(places)
                : one_in(2) ? below(std::min<size_t>(places, 128))
                            : places - 1 - below(std::min<size_t>(places, 128));
    if (!one_in(4)) at -= at % width;
    return at;
  };
  const size_t at = place();
  uint64_t old = 0;
  std::memcpy(&old, bytes.data() + at, width);
  if (one_in(5)) {
    const size_t other = place();
    uint64_t theirs = 0;
    std::memcpy(&theirs, bytes.data() + other, width);
    std::memcpy(bytes.data() + other, &old, width);
    std::memcpy(bytes.data() + at, &theirs, width);
    return;
  }
  const uint64_t value = awkward(random_(), bytes.size(), old);
  std::memcpy(bytes.data() + at, &value, width);
}

// Cut off, cut out, doubled, exchanged, or taken from another capture of the kind.
void Mutator::move_range(Octets& bytes) {
  if (bytes.empty()) return;
  const auto iterator = [&](size_t at) { return bytes.begin() + static_cast<std::ptrdiff_t>(at); };
  const size_t grain = one_in(2) ? 32 : one_in(2) ? 4 : 1;
  const size_t from = below(bytes.size()) / grain * grain;
  const size_t count = std::min<size_t>(bytes.size() - from, (1 + below(8)) * grain);
  const Octets range(iterator(from), iterator(from + count));
  const size_t to = below(bytes.size()) / grain * grain;
  switch (below(6)) {
    case 0:
      bytes.resize(from);
      break;
    case 1:
      bytes.erase(iterator(from), iterator(from + count));
      break;
    case 2:
      bytes.insert(iterator(to), range.begin(), range.end());
      break;
    case 3:
      std::copy_n(range.begin(), std::min(count, bytes.size() - to), iterator(to));
      break;
    case 4: {
      const auto& other = captures_[below(captures_.size())].files;
      auto file = other.begin();
      std::advance(file, static_cast<std::ptrdiff_t>(below(other.size())));
      const Octets& source = file->second;
      if (source.empty()) break;
      const size_t begin = below(source.size()) / grain * grain;
      const auto first = source.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = first + static_cast<std::ptrdiff_t>(
                                    std::min<size_t>(source.size() - begin, 1 + below(2048)));
      if (one_in(2)) bytes.resize(to);
      bytes.insert(iterator(to), first, last);
      break;
    }
    default:
      // Many times, as counts that have no bound would like it.
      for (uint64_t i = below(64); i > 0 && bytes.size() < kMaxBytes; --i) {
        bytes.insert(iterator(to), range.begin(), range.end());
      }
  }
}

// Of a session: files that are missing, doubled, exchanged, in directories of other numbers.
void Mutator::change_files(Capture& capture) {
  const auto any = [&] {
    auto file = capture.files.begin();
    std::advance(file, static_cast<std::ptrdiff_t>(below(capture.files.size())));
    return file;
  };
  switch (below(5)) {
    case 0:
      capture.files.erase(any());
      break;
    case 1:
      std::swap(any()->second, any()->second);
      break;
    case 2: {
      const Octets bytes = any()->second;
      const char* const numbers[] = {"1", "7", "00", "4294967295", "4294967296", "-1", "x", ""};
      capture.files["thread_" + std::string(numbers[below(std::size(numbers))]) +
                    (one_in(2) ? "/index.atf" : "/detail.atf")] = bytes;
      break;
    }
    case 3: {
      const auto& others = captures_[below(captures_.size())].files;
      for (const auto& [name, bytes] : others) {
        if (one_in(2)) capture.files[name] = bytes;
      }
      break;
    }
    default:
      any()->second.clear();
  }
}

void Mutator::change_json(Octets& bytes) {
  json document = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (document.is_discarded()) return change_bytes(bytes);
  for (uint64_t i = 1 + below(3); i > 0; --i) {
    json* const place = any_place(document, random_);
    if (one_in(3) && place->is_array() && !place->empty()) {
      const json copy = place->at(below(place->size()));
      for (uint64_t times = 1 + below(20); times > 0; --times) place->push_back(copy);
    } else if (one_in(4) && place->is_object() && !place->empty()) {
      auto member = place->begin();
      std::advance(member, static_cast<std::ptrdiff_t>(below(place->size())));
      place->erase(member);
    } else if (one_in(4)) {
      const json copy = *any_place(document, random_);
      *place = copy;
    } else {
      *place = awkward_value(random_, document);
    }
  }
  const std::string text = document.dump(-1, ' ', one_in(2), json::error_handler_t::replace);
  bytes.assign(text.begin(), text.end());
}

void Mutator::repair(Octets& bytes) {
  switch (kind_) {
    case Kind::kAtf1:
    case Kind::kAtf2:
      return repair_atf(bytes);
    case Kind::kRtc:
      return repair_rtc(bytes);
    case Kind::kWtf:
      return repair_wtf(bytes);
    case Kind::kWirePages:
      return repair_page(bytes);
    case Kind::kWtfJson:
    case Kind::kDial9:
      return;  // they have no checksum
  }
}

// The checksum of the section between header and footer; half the time the counts too.
void Mutator::repair_atf(Octets& bytes) {
  if (bytes.size() < atf::kHeaderBytes + atf::kFooterBytes) return;
  const size_t footer = bytes.size() - atf::kFooterBytes;
  const bool is_index = std::memcmp(bytes.data() + footer, atf::kIndexFooterMagic, 4) == 0;
  const bool is_detail = std::memcmp(bytes.data() + footer, atf::kDetailFooterMagic, 4) == 0;
  if (!is_index && !is_detail) return;
  const auto version = static_cast<atf::Version>(bytes[5]);
  if (version != atf::Version::kV1 && version != atf::Version::kV2) return;
  const Bytes section = Bytes(bytes).subspan(atf::kHeaderBytes, footer - atf::kHeaderBytes);
  store_le<uint32_t>(bytes.data() + footer + 4, atf::section_checksum(version, section));
  if (!is_index || one_in(2)) return;
  store_le<uint64_t>(bytes.data() + footer + 8, section.size() / atf::kEventBytes);
  store_le<uint64_t>(bytes.data() + footer + 32, section.size());
  store_le<uint64_t>(bytes.data() + 40, footer);
  if (version == atf::Version::kV2) {
    store_le<uint64_t>(bytes.data() + 24, section.size() / atf::kEventBytes);
  } else {
    store_le<uint32_t>(bytes.data() + 28, static_cast<uint32_t>(section.size() / atf::kEventBytes));
  }
}

// The Crc of each Unit: its last five bytes, or those of the file.
void Mutator::repair_rtc(Octets& bytes) {
  constexpr uint8_t kCrcFirstByte = rtc::kCrcId << 1;
  constexpr size_t kFrame = 1 + rtc::kCrcPayloadBytes;
  // Where the next Marker begins, the Unit ends.
  size_t begin = 0;
  while (begin < bytes.size()) {
    size_t end = begin + rtc::kMarkerBytes;
    while (end < bytes.size() &&
           !(bytes[end] == rtc::kMarkerFirstByte && bytes.size() - end >= rtc::kMarkerBytes &&
             bytes[end + 1] == rtc::kMarkerFill &&
             bytes[end + rtc::kMarkerBytes - 1] == rtc::kMarkerFill)) {
      ++end;
    }
    end = std::min(end, bytes.size());
    const size_t from = begin + rtc::kMarkerBytes;
    if (end >= from + kFrame) {
      // Bytes went missing before it: at its place there is one again.
      if (bytes[end - kFrame] != kCrcFirstByte && !one_in(4)) bytes[end - kFrame] = kCrcFirstByte;
      if (bytes[end - kFrame] == kCrcFirstByte) {
        const Bytes covered = Bytes(bytes).subspan(from, end - kFrame - from);
        store_le<uint32_t>(bytes.data() + end - rtc::kCrcPayloadBytes, crc32_ieee(covered));
      }
    }
    begin = end;
  }
}

// The lengths of chunks that reach beyond the file, or stop before the next one.
void Mutator::repair_wtf(Octets& bytes) {
  size_t at = wtf::kFileHeaderBytes;
  while (at + wtf::kChunkHeaderBytes <= bytes.size()) {
    const uint32_t length = load_le<uint32_t>(bytes.data() + at + 8);
    if (length < wtf::kChunkHeaderBytes || length > bytes.size() - at) {
      store_le<uint32_t>(bytes.data() + at + 8, static_cast<uint32_t>(bytes.size() - at));
      return;
    }
    at += length;
  }
}

// A page frame: the checksums of its bytes, its header and the frame.
void Mutator::repair_page(Octets& bytes) {
  if (bytes.size() < wire::kPagePrefixBytes) return;
  PageHeader page;
  std::memcpy(&page, bytes.data() + sizeof(wire::FrameHeader), sizeof page);
  const Bytes sent = Bytes(bytes).subspan(wire::kPagePrefixBytes);
  page.bytes_crc32c = crc32c(sent);
  if (page.codec == Codec::kRaw && !one_in(8)) page.raw_bytes = static_cast<uint32_t>(sent.size());
  if (!one_in(8)) page.lane = Lane(static_cast<uint8_t>(page.lane) & 1);
  wire::encode_page_prefix(page, static_cast<uint32_t>(sent.size()), frame_crc, bytes.data());
}

// With a right checksum and length, now and then with bytes changed within.
Octets Mutator::zipped(const Octets& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return bytes;
  Octets out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (one_in(4)) change_bytes(out);
  if (one_in(4)) move_range(out);
  return out;
}

}  // namespace collect::ctl::testing
