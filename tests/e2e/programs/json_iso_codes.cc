// The real job's program: reads Debian's iso-codes with nlohmann-json, a code base that no one here
// wrote, on several threads. Every function of the library that the work passes through is traced.
//
// json_iso_codes [ROUNDS [THREADS [PAUSE_MS [DIRECTORY]]]]. One round parses every document,
// serializes it, parses that again and compares, which makes about 28 million calls and returns;
// the threads share the documents, with a pause after each. With UNTIL_FILE in its environment it
// continues until there is such a file: so long is there time to steer the recording. Prints what
// was done, which depends on the arguments and the files alone otherwise.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// The two largest lists would make 300 million events a round.
constexpr uintmax_t kLargestDocumentBytes = 100'000;

struct Totals {
  std::atomic<uint64_t> documents{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> values{0};
  std::atomic<uint64_t> differences{0};
};

uint64_t count_values(const nlohmann::json& value) {
  uint64_t count = 1;
  if (value.is_structured()) {
    for (const nlohmann::json& inner : value) count += count_values(inner);
  }
  return count;
}

void handle(const std::string& text, Totals& totals) {
  const nlohmann::json value = nlohmann::json::parse(text);
  const std::string again = value.dump();
  if (nlohmann::json::parse(again) != value) totals.differences++;
  totals.documents++;
  totals.bytes += again.size();
  totals.values += count_values(value);
}

std::vector<std::string> read_documents(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    if (entry.file_size() <= kLargestDocumentBytes) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> documents;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    documents.push_back(text.str());
  }
  return documents;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 4;
  const int pause_ms = argc > 3 ? std::atoi(argv[3]) : 0;
  const std::string directory = argc > 4 ? argv[4] : "/usr/share/iso-codes/json";
  std::error_code none;
  if (rounds < 1 || threads < 1 || pause_ms < 0 ||
      !std::filesystem::is_directory(directory, none)) {
    std::fprintf(stderr, "usage: json_iso_codes [ROUNDS [THREADS [PAUSE_MS [DIRECTORY]]]]; %s\n",
                 std::filesystem::is_directory(directory, none)
                     ? "counts are at least 1"
                     : "there is no such directory (apt-get install iso-codes)");
    return 2;
  }
  const char* const until = std::getenv("UNTIL_FILE");
  const auto is_over = [until] {
    std::error_code missing;
    return until == nullptr || std::filesystem::exists(until, missing);
  };
  const std::vector<std::string> documents = read_documents(directory);
  Totals totals;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    // Documents are dealt out beforehand, so that every run gives each thread the same calls.
    workers.emplace_back([&documents, &totals, &is_over, rounds, threads, pause_ms, worker] {
      const int work = rounds * static_cast<int>(documents.size());
      for (int item = worker; item < work || !is_over(); item += threads) {
        handle(documents[static_cast<size_t>(item) % documents.size()], totals);
        if (pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("%llu documents, %llu bytes of JSON, %llu values, %llu differences\n",
              static_cast<unsigned long long>(totals.documents.load()),
              static_cast<unsigned long long>(totals.bytes.load()),
              static_cast<unsigned long long>(totals.values.load()),
              static_cast<unsigned long long>(totals.differences.load()));
  return totals.differences == 0 ? 0 : 1;
}
