// One piece of work on so many events, for instructions.py, which counts what it takes:
//
//   instructions encode EVENTS         pages of an agent are packed (codec tuples)
//   instructions decode EVENTS         and unpacked
//   instructions store EVENTS ROOT     pages as they come from the wire become a sealed session
//   instructions lod SESSION           the level-of-detail indexes of a session are made
//
// Everything but the pages is the same for any EVENTS.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/crc32.h"
#include "proto/wire/page_codec.h"
#include "storage/fs/posix_fs.h"
#include "storage/read/lod_files.h"
#include "storage/read/session_files.h"
#include "storage/session/session.h"

namespace {

using namespace collect;

constexpr uint32_t kPageEvents = 2000;  // of a ring page of 64 KiB
constexpr uint32_t kPages = 16;         // different ones, taken again and again
constexpr uint32_t kMaxDepth = 24;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "instructions: %s\n", to_string(result.error()).c_str());
    std::exit(1);
  }
  return std::move(*result);
}
void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "instructions: %s\n", to_string(status.error()).c_str());
  std::exit(1);
}

// Calls and returns of some hundred functions, nested as in a program.
class Pages {
 public:
  Pages() : events_(kPages * kPageEvents) {
    std::vector<uint64_t> open;
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < events_.size(); ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const bool calls = open.size() < kMaxDepth && (open.empty() || state % 100 < 50);
      atf::IndexEventV2 event{};
      if (calls)
        open.push_back(0x401000 + ((open.empty() ? 0 : open.back()) * 31 + state % 3) % 400 * 16);
      event.timestamp_ns = ns_;
      event.function_id = open.back();
      event.detail_seq = atf::kNoDetail;
      event.event_kind = calls ? 1 : 2;
      if (!calls) open.pop_back();
      events_[i] = event;
      ns_ += 20 + state % 60;
    }
  }

  Bytes page(uint64_t number) const {
    return Bytes(reinterpret_cast<const uint8_t*>(&events_[number % kPages * kPageEvents]),
                 kPageEvents * atf::kEventBytes);
  }
  // The same events, later than those of all pages before.
  void page_at(uint64_t number, std::vector<uint8_t>& bytes) const {
    const uint64_t later = number / kPages * ns_;
    const Bytes from = page(number);
    bytes.assign(from.begin(), from.end());
    for (size_t at = 0; at < bytes.size(); at += atf::kEventBytes) {
      store_le(bytes.data() + at, load_le<uint64_t>(bytes.data() + at) + later);
    }
  }

 private:
  std::vector<atf::IndexEventV2> events_;
  uint64_t ns_ = 1000;
};

// Of each of the pages; the last use of it counts.
struct Encoded {
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kPageEvents * atf::kEventBytes);
  size_t size = 0;
};

std::vector<Encoded> encode(const Pages& pages, uint64_t count) {
  const auto encoder = std::make_unique<wire::TupleEncoder>();
  std::vector<Encoded> encoded(kPages);
  for (uint64_t i = 0; i < count; ++i) {
    Encoded& one = encoded[i % kPages];
    one.size = encoder->encode(kPageEvents, pages.page(i), one.bytes);
  }
  return encoded;
}

int decode(const Pages& pages, uint64_t count) {
  const std::vector<Encoded> encoded = encode(pages, kPages);
  std::vector<uint8_t> records(kPageEvents * atf::kEventBytes);
  for (uint64_t i = 0; i < count; ++i) {
    const Encoded& one = encoded[i % kPages];
    if (wire::decode_tuples(kPageEvents, Bytes(one.bytes).first(one.size), records) !=
        wire::PageCodecError::kNone) {
      return 1;
    }
  }
  return std::memcmp(records.data(), pages.page(count - 1).data(), records.size()) == 0 ? 0 : 1;
}

int store(const Pages& pages, uint64_t count, const char* root) {
  storage::PosixFs fs(root);
  storage::SessionOptions options;
  options.root = root;
  storage::SessionIdentity identity;
  identity.pid = 1;
  const auto session = must(storage::Session::create(fs, options, identity));
  must(session->open_stream({1, 1, "thread", 1000}));
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> encoded(kPageEvents * atf::kEventBytes);
  const auto encoder = std::make_unique<wire::TupleEncoder>();
  for (uint64_t i = 0; i < count; ++i) {
    pages.page_at(i, bytes);
    Page page;
    page.stream_id = 1;
    page.first_seq = i * kPageEvents;
    page.record_count = kPageEvents;
    page.bytes = bytes;
    page.bytes_crc32c = crc32c(bytes);
    page.first_ns = load_le<uint64_t>(bytes.data());
    page.last_ns = load_le<uint64_t>(bytes.data() + bytes.size() - atf::kEventBytes);
    // As it came from the wire.
    page.encoded = Bytes(encoded).first(encoder->encode(kPageEvents, bytes, encoded));
    page.encoded_by = Codec::kTuples;
    must(session->append_pages({&page, 1}));
    if (i % 64 == 0) must(session->commit());
  }
  must(session->seal(storage::SessionState::kComplete, ""));
  return 0;
}

int make_lod(const char* session) {
  read::Trace trace = must(read::open_trace(session));
  must(read::make_lods(trace, [](size_t, size_t) {}));
  return trace.threads.empty() || !trace.threads.front().lod ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "lod" && argc == 3) return make_lod(argv[2]);
  if (argc < 3) return 2;
  const Pages pages;
  const uint64_t count = std::strtoull(argv[2], nullptr, 10) / kPageEvents;
  if (what == "encode") return encode(pages, count).front().size == 0 ? 1 : 0;
  if (what == "decode") return decode(pages, count);
  if (what == "store" && argc == 4) return store(pages, count, argv[3]);
  return 2;
}
