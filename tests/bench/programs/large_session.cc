// large_session DIRECTORY MILLION [THREADS]: a sealed session of so many million events, as fast as
// the disk takes them: calls of 3,000 functions, up to 40 deep, 91 ns from event to event, with a
// pause of 10 ms now and then. Prints the directory of the session.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "formats/atf/headers.h"
#include "formats/atf/writer.h"
#include "formats/core/crc32.h"

namespace {

using namespace collect;
using namespace collect::atf;

constexpr uint64_t kFirstNs = 1'000'000'000;
constexpr size_t kBlockEvents = size_t{1} << 16;
constexpr uint32_t kMaxDepth = 40;
constexpr uint64_t kFunctions = 3000;

class Random {  // xorshift64*
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t below(uint64_t bound) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545F4914F6CDD1Dull >> 33) % bound;
  }

 private:
  uint64_t state_;
};

void write_all(int fd, Bytes bytes, off_t at) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), at);
    if (wrote <= 0) {
      std::perror("large_session");
      std::exit(1);
    }
    at += wrote;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
}

void write_thread(const std::string& directory, uint32_t n, uint64_t events) {
  std::filesystem::create_directories(directory);
  const int fd = ::open((directory + "/index.atf").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) {
    std::perror("large_session");
    std::exit(1);
  }
  Random random(n + 1);
  std::vector<uint64_t> open;
  std::vector<uint8_t> block(kBlockEvents * kEventBytes);
  uint32_t checksum = 0;
  uint64_t ns = kFirstNs;
  for (uint64_t done = 0; done < events;) {
    const uint64_t count = std::min<uint64_t>(kBlockEvents, events - done);
    for (uint64_t i = 0; i < count; ++i) {
      // What is left must be enough for the returns.
      const bool must_return = events - done - i <= open.size();
      const bool calls =
          !must_return && open.size() < kMaxDepth && (open.empty() || random.below(100) < 50);
      IndexEvent event;
      event.timestamp_ns = ns;
      event.detail_seq = kNoDetail;
      if (calls) {
        // Paths repeat, as in a program: at every eighth depth one of four functions is called.
        const uint64_t caller = open.empty() ? 0 : open.back();
        const uint64_t choice = open.size() % 8 == 0 ? random.below(4) : 0;
        const uint64_t own = (caller * 31 + choice * 7 + open.size()) % kFunctions;
        open.push_back(own);
        event.kind = EventKind::kCall;
        event.function_id = 0x1000 + own * 16;
      } else if (!open.empty()) {
        event.kind = EventKind::kReturn;
        event.function_id = 0x1000 + open.back() * 16;
        open.pop_back();
      } else {
        event.kind = EventKind::kCall;  // one more than fits: it stays open
        event.function_id = 0x1000;
        open.push_back(0);
      }
      encode_index_event(Version::kV2, event,
                         MutableBytes(block).subspan(i * kEventBytes).first<kEventBytes>());
      ns += random.below(5'000'000) == 0 ? 10'000'000 : 20 + random.below(143);
    }
    const Bytes bytes = Bytes(block).first(count * kEventBytes);
    checksum = crc32c(bytes, checksum);
    write_all(fd, bytes, static_cast<off_t>(kEventsOffset + done * kEventBytes));
    done += count;
  }
  IndexHeader header{Version::kV2, Arch::kX86_64, Os::kLinux, ClockType::kBoottime};
  header.thread_id = 1000 + n;
  header.event_count = events;
  header.footer_offset = kEventsOffset + events * kEventBytes;
  header.time_start_ns = kFirstNs;
  header.time_end_ns = ns;
  IndexFooter footer;
  footer.checksum = checksum;
  footer.event_count = events;
  footer.bytes_written = events * kEventBytes;
  footer.time_start_ns = header.time_start_ns;
  footer.time_end_ns = header.time_end_ns;
  uint8_t bytes[kHeaderBytes];
  encode_index_header(header, bytes);
  write_all(fd, bytes, 0);
  encode_index_footer(footer, bytes);
  write_all(fd, bytes, static_cast<off_t>(header.footer_offset));
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::atoll(argv[2]) <= 0 || (argc > 3 && std::atoi(argv[3]) <= 0)) {
    std::fprintf(stderr, "usage: large_session DIRECTORY MILLION [THREADS]\n");
    return 2;
  }
  const uint64_t events = static_cast<uint64_t>(std::atoll(argv[2])) * 1'000'000;
  const auto threads = static_cast<uint32_t>(argc > 3 ? std::atoi(argv[3]) : 4);
  const std::string session = std::string(argv[1]) + "/session_20260131_235959/pid_1";
  std::vector<std::thread> writers;
  for (uint32_t n = 0; n < threads; ++n) {
    writers.emplace_back(
        [&, n] { write_thread(session + "/thread_" + std::to_string(n), n, events / threads); });
  }
  for (std::thread& writer : writers) writer.join();
  std::ofstream manifest(session + "/manifest.json");
  manifest
      << R"({"format_version":"2.2","state":"complete","process":{"name":"large","pid":1},)"
      << R"("symbols_state":"done","modules":[{"module_id":0,"path":"/bin/large"}],"symbols":[)";
  for (uint64_t i = 0; i < kFunctions; ++i) {
    manifest << (i == 0 ? "" : ",") << "{\"function_id\":\"0x" << std::hex << 0x1000 + i * 16
             << std::dec << "\",\"name\":\"function_" << i << "\"}";
  }
  manifest << "],\"threads\":[";
  for (uint32_t n = 0; n < threads; ++n) {
    manifest << (n == 0 ? "" : ",") << "{\"id\":" << n << ",\"thread_id\":" << 1000 + n
             << ",\"name\":\"worker " << n << "\",\"ended\":true,\"events\":" << events / threads
             << "}";
  }
  manifest << "],\"totals\":{\"threads\":" << threads
           << ",\"events\":" << events / threads * threads << "}}\n";
  if (!manifest.flush()) return 1;
  std::printf("%s\n", session.c_str());
  return 0;
}
