// Slow links: what codec 1 makes of real captures, beside other compressors on the same columns;
// and how many events a link of 35 MB/s carries, raw and encoded.
//
// bench_link ROUNDS: how often the program reads its documents for the second part; 0: one small
// one.
#include <lz4.h>
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "proto/wire/page_codec.h"
#include "tests/bench/contract.h"
#include "tests/bench/cpu_time.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::bench {
namespace {

namespace fs = std::filesystem;
using Octets = std::vector<uint8_t>;

constexpr char kDocuments[] = "/usr/share/iso-codes/json";
constexpr uint64_t kUsb2 = 35'000'000;
constexpr size_t kPageBytes = 64 * 1024;
constexpr size_t kMostBytes = 64u << 20;  // of one capture

void fail(const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::exit(1);
}

// ---- the codec alone

struct Page {
  Lane lane{};
  uint32_t records = 0;
  Octets bytes;
};

// The records of a thread's file, cut as an agent cuts them; a footer may stand at the end.
void add_pages(const std::string& path, Lane lane, std::vector<Page>& pages) {
  std::ifstream file(path, std::ios::binary);
  Octets bytes(kMostBytes);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() < 192) return;
  const size_t end = bytes.size() == kMostBytes ? bytes.size() : bytes.size() - 64;
  Page page{lane, 0, {}};
  for (size_t at = 64; at + 32 <= end;) {
    const size_t length = lane == Lane::kIndex ? 32 : load_le<uint32_t>(bytes.data() + at);
    if (length < 24 || length > end - at) break;
    if (page.bytes.size() + length > kPageBytes) {
      pages.push_back(std::move(page));
      page = {lane, 0, {}};
    }
    page.bytes.insert(page.bytes.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                      bytes.begin() + static_cast<ptrdiff_t>(at + length));
    ++page.records;
    at += length;
  }
  if (page.records != 0) pages.push_back(std::move(page));
}

std::vector<Page> pages_of(const std::string& directory, Lane lane) {
  std::vector<Page> pages;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const char* const name = lane == Lane::kIndex ? "index.atf" : "detail.atf";
    if (entry.path().filename() == name) add_pages(entry.path().string(), lane, pages);
  }
  return pages;
}

struct Cost {
  uint64_t bytes = 0;
  double encode = 0;  // seconds
  double decode = 0;
};

// `encode` and `decode` each return the size of what they made.
using Step = std::function<size_t(Bytes, MutableBytes)>;

Cost cost_of(const std::vector<Octets>& inputs, const Step& encode, const Step& decode) {
  Cost cost;
  Octets sent(2 * kPageBytes);
  Octets back(2 * kPageBytes);
  for (const Octets& input : inputs) {
    const double begin = thread_cpu_seconds();
    const size_t size = encode(input, sent);
    const double between = thread_cpu_seconds();
    const size_t again = decode(Bytes(sent).first(size), MutableBytes(back).first(input.size()));
    cost.decode += thread_cpu_seconds() - between;
    cost.encode += between - begin;
    if (again != input.size() || !std::equal(input.begin(), input.end(), back.begin())) {
      fail("it did not come back as it was");
    }
    cost.bytes += size;
  }
  return cost;
}

void print_cost(const std::string& what, const Cost& cost, uint64_t raw, uint64_t records) {
  const auto ns = [&](double seconds) { return seconds * 1e9 / static_cast<double>(records); };
  const auto rate = [&](double seconds) { return static_cast<double>(raw) * 1e-6 / seconds; };
  std::printf("  %-34s %6.2fx   encode %6.1f ns/record %6.0f MB/s   decode %6.1f ns %6.0f MB/s\n",
              what.c_str(), static_cast<double>(raw) / static_cast<double>(cost.bytes),
              ns(cost.encode), rate(cost.encode), ns(cost.decode), rate(cost.decode));
}

Cost zstd_cost(const std::vector<Octets>& inputs, int level) {
  return cost_of(
      inputs,
      [level](Bytes in, MutableBytes out) {
        return ZSTD_compress(out.data(), out.size(), in.data(), in.size(), level);
      },
      [](Bytes in, MutableBytes out) {
        return ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
      });
}

Cost lz4_cost(const std::vector<Octets>& inputs) {
  return cost_of(
      inputs,
      [](Bytes in, MutableBytes out) {
        return static_cast<size_t>(LZ4_compress_default(
            reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
            static_cast<int>(in.size()), static_cast<int>(out.size())));
      },
      [](Bytes in, MutableBytes out) {
        return static_cast<size_t>(LZ4_decompress_safe(
            reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
            static_cast<int>(in.size()), static_cast<int>(out.size())));
      });
}

// Pages that are no tuples count as raw.
Cost tuple_cost(const std::vector<Octets>& inputs) {
  const auto encoder = std::make_unique<wire::TupleEncoder>();
  return cost_of(
      inputs,
      [&](Bytes in, MutableBytes out) {
        const size_t size = encoder->encode(static_cast<uint32_t>(in.size() / 32), in, out);
        if (size != 0) return size;
        std::copy(in.begin(), in.end(), out.begin());
        return in.size();
      },
      [](Bytes in, MutableBytes out) {
        if (in.size() == out.size()) {
          std::copy(in.begin(), in.end(), out.begin());
          return out.size();
        }
        const auto count = static_cast<uint32_t>(out.size() / 32);
        return wire::decode_tuples(count, in, out) == wire::PageCodecError::kNone ? out.size() : 0;
      });
}

// Ratio of codec 1.
double compare(const std::string& what, const std::vector<Page>& pages) {
  if (pages.empty()) return 0;
  const auto encoder = std::make_unique<wire::ColumnEncoder>();
  Octets scratch(2 * kPageBytes);
  std::vector<Octets> raw;
  std::vector<Octets> columns;
  uint64_t bytes = 0;
  uint64_t records = 0;
  size_t at = 0;
  for (const Page& page : pages) {
    raw.push_back(page.bytes);
    bytes += page.bytes.size();
    records += page.records;
  }
  const Cost ours = cost_of(
      raw,
      [&](Bytes in, MutableBytes out) {
        return encoder->encode(pages[at].lane, pages[at].records, in, out);
      },
      [&](Bytes in, MutableBytes out) {
        const Page& page = pages[at++];
        return wire::decode_columns(page.lane, page.records, in, scratch, out) ==
                       wire::PageCodecError::kNone
                   ? out.size()
                   : 0;
      });
  for (const Page& page : pages) {
    Octets sent(page.bytes.size());
    sent.resize(encoder->encode(page.lane, page.records, page.bytes, sent));
    Octets turned(page.bytes.size());
    constexpr size_t kMaskBytes = 4;
    const int size =
        sent.size() < kMaskBytes
            ? 0
            : LZ4_decompress_safe(reinterpret_cast<const char*>(sent.data() + kMaskBytes),
                                  reinterpret_cast<char*>(turned.data()),
                                  static_cast<int>(sent.size() - kMaskBytes),
                                  static_cast<int>(turned.size()));
    if (size <= 0) fail("the codec's own block can't be read");
    turned.resize(static_cast<size_t>(size));
    columns.push_back(std::move(turned));
  }
  std::printf("%s: %llu records, %llu MB\n", what.c_str(), static_cast<unsigned long long>(records),
              static_cast<unsigned long long>(bytes >> 20));
  print_cost("codec 1, columns", ours, bytes, records);
  if (pages[0].lane == Lane::kIndex) print_cost("codec 2, tuples", tuple_cost(raw), bytes, records);
  print_cost("liblz4, records as they are", lz4_cost(raw), bytes, records);
  print_cost("liblz4, columns (without turning)", lz4_cost(columns), bytes, records);
  print_cost("zstd 1, columns (without turning)", zstd_cost(columns, 1), bytes, records);
  print_cost("zstd 3, columns (without turning)", zstd_cost(columns, 3), bytes, records);
  return static_cast<double>(bytes) / static_cast<double>(ours.bytes);
}

e2e::Arguments json_program(int rounds, const std::string& documents) {
  return {e2e::program("json_iso_codes"), std::to_string(rounds), "4", "0", documents};
}

// A directory with some of the documents.
std::string some_documents(const e2e::Scratch& scratch, const std::string& name,
                           const std::vector<std::string>& documents) {
  const std::string directory = scratch / name;
  fs::create_directories(directory);
  for (const std::string& document : documents) {
    fs::copy_file(fs::path(kDocuments) / document, fs::path(directory) / document);
  }
  return directory;
}

void report_codec(const std::string& reference) {
  for (const int version : {2, 1}) {
    e2e::Scratch scratch;
    e2e::CollectorProcess collector(scratch, {"--rtc", "false"});
    const std::string documents =
        some_documents(scratch, "documents", {"iso_4217.json", "schema-15924.json"});
    e2e::Environment environment = collector.tracing("wait", version);
    const std::string which = ", ATF version " + std::to_string(version);
    if (!e2e::run(scratch.path(), json_program(1, documents), environment).exited_with(0)) {
      fail("json_iso_codes failed");
    }
    const double ratio = compare("calls and returns of json_iso_codes" + which,
                                 pages_of(collector.root(), Lane::kIndex));
    if (version == 2) {
      report("bytes of real index pages, raw / encoded", ratio, Side::kAtLeast, 5, "x", 1);
    }
  }
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch, {"--rtc", "false"});
  e2e::Environment environment = collector.tracing("wait");
  environment["COLLECT_DETAIL"] = "on";
  const std::string documents = some_documents(scratch, "documents", {"schema-15924.json"});
  if (!e2e::run(scratch.path(), json_program(1, documents), environment).exited_with(0)) {
    fail("json_iso_codes failed");
  }
  (void)compare("registers and stack bytes of the same", pages_of(collector.root(), Lane::kDetail));
  if (reference.empty()) {
    std::printf("skipped: samples of others (COLLECT_REFERENCE has no reference pack)\n");
    return;
  }
  (void)compare("samples of others", pages_of(reference + "/data/atf", Lane::kIndex));
}

// ---- end to end

double carried_rate(const std::string& codecs, int rounds) {
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch, {"--rtc", "false", "--page-codecs", codecs});
  fakes::ChaosProxy cable(collector.ingest_port());
  cable.limit_rate(kUsb2);
  const std::string documents =
      rounds == 0 ? some_documents(scratch, "documents", {"iso_4217.json"}) : kDocuments;
  e2e::Environment environment = collector.tracing("wait");
  environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(cable.port());
  environment["COLLECT_EXIT_FLUSH_MS"] = "600000";
  const double begin = wall_seconds();
  e2e::ChildProcess job(scratch.path(), json_program(rounds == 0 ? 1 : rounds, documents),
                        environment);
  if (!job.wait(e2e::seconds(600)).exited_with(0)) fail("json_iso_codes failed");
  const std::vector<e2e::RecordedSession> sessions =
      e2e::sealed_sessions(collector.root(), job.pid(), e2e::seconds(600));
  const double took = wall_seconds() - begin;
  if (sessions.size() != 1 || sessions[0].totals().lost != 0) fail("events were lost");
  return static_cast<double>(sessions[0].totals().events) * 1e-6 / took;
}

void report_link(int rounds) {
  const double raw = carried_rate("off", rounds);
  const double encoded = carried_rate("auto", rounds);
  mention("35 MB/s link, pages raw", raw, "M ev/s");
  mention("35 MB/s link, pages encoded", encoded, "M ev/s");
  report("events that a 35 MB/s link carries, encoded / raw", encoded / raw, Side::kAtLeast, 5, "x",
         1);
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  using namespace collect::bench;
  if (!std::filesystem::is_directory(kDocuments)) {
    std::printf("skipped: iso-codes is not installed\n");
    return 0;
  }
  report_codec(collect::e2e::reference_directory());
  report_link(argc > 1 ? std::atoi(argv[1]) : 1);
  return 0;
}
