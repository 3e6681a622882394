#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "daemon/ctl/doctor/checks.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/printable.h"
#include "storage/read/unnamed_file.h"

namespace collect::ctl {
namespace {

using Clock = std::chrono::steady_clock;
using Verdict = Check::Verdict;

constexpr size_t kPieceBytes = size_t{1} << 20;

// The directory itself, or the nearest above it that is there.
std::string nearest_directory(const std::string& root) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(root, error).lexically_normal();
  while (!path.empty() && path != path.root_path() && !std::filesystem::exists(path, error)) {
    path = path.parent_path();
  }
  return path.string();
}

// Nothing that a file system could pack.
std::vector<uint8_t> random_piece() {
  std::mt19937_64 random(std::random_device{}());
  std::vector<uint8_t> piece(kPieceBytes);
  for (size_t at = 0; at < piece.size(); at += sizeof(uint64_t)) {
    const uint64_t value = random();
    std::copy_n(reinterpret_cast<const uint8_t*>(&value), sizeof value, piece.data() + at);
  }
  return piece;
}

struct Speed {
  uint64_t bytes = 0;
  double seconds = 0;
};

Result<Speed> measure(read::UnnamedFile& file, uint64_t most) {
  const std::vector<uint8_t> piece = random_piece();
  Speed speed;
  const Clock::time_point begin = Clock::now();
  while (speed.bytes + piece.size() <= most && Clock::now() - begin < kProbeTime) {
    COLLECT_TRY(file.write(piece));
    speed.bytes += piece.size();
  }
  COLLECT_TRY(file.sync());
  speed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return speed;
}

Check check_space(const std::string& where, uint64_t free) {
  const std::string found = fmt::format("{} free in {}", short_bytes(free), printable(where));
  const std::string way_out = "make room, or name another directory (run -o, collectord --root)";
  if (free < kLeastFreeBytes) return {"disk space", Verdict::kProblem, found, way_out};
  if (free < kScarceFreeBytes) {
    return {"disk space", Verdict::kWarning, found + "; a busy program fills that in minutes",
            "use --max-size, or " + way_out};
  }
  return {"disk space", Verdict::kOk, found, ""};
}

Check check_speed(const Result<Speed>& speed) {
  if (!speed.ok()) {
    return {"disk speed", Verdict::kProblem, speed.error().message, "name another directory"};
  }
  const double rate = static_cast<double>(speed->bytes) / speed->seconds;
  const std::string found =
      fmt::format("{}/s, of {} written and synced", short_bytes(static_cast<uint64_t>(rate)),
                  short_bytes(speed->bytes));
  if (rate >= static_cast<double>(kSlowBytesPerSecond)) {
    return {"disk speed", Verdict::kOk, found, ""};
  }
  return {"disk speed", Verdict::kWarning, found + ": less than three million events a second",
          "record to a faster disk, or less of the program (--only, --longer-than)"};
}

}  // namespace

std::vector<Check> check_store(const std::string& root, bool is_served) {
  const std::string where = nearest_directory(root);
  Result<read::UnnamedFile> file = read::UnnamedFile::create(where);
  if (!file.ok() && is_served && file.code() == Code::kPermission) {
    return {{"disk speed", Verdict::kOk,
             "not measured: the collector's user alone may write to " + printable(where), ""}};
  }
  if (!file.ok()) {
    return {{"disk space", Verdict::kProblem, file.error().message,
             "name a directory that this user can write (run -o, collectord --root)"}};
  }
  const Result<uint64_t> free = file->free_bytes();
  if (!free.ok()) return {{"disk space", Verdict::kProblem, free.error().message, ""}};
  // A quarter of what is left at most: others write, too.
  return {check_space(where, *free),
          check_speed(measure(*file, std::min(kMaxProbeBytes, *free / 4)))};
}

}  // namespace collect::ctl
