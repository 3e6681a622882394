#include "storage/model/collector_identity.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "formats/core/text/hex.h"
#include "storage/fs/whole_file.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr size_t kMaxIdentityBytes = 64;
constexpr uint64_t kNsPerMs = 1'000'000;

std::string text_of(const CollectorIdentity& collector) {
  return hex_bytes(collector.id) + "\n";
}

}  // namespace

CollectorIdentity draw_collector_identity(uint64_t unix_ns) {
  CollectorIdentity collector;
  collector.epoch = unix_ns / kNsPerMs;
  if (::getentropy(collector.id.data(), collector.id.size()) != 0) {
    std::random_device device;
    std::generate(collector.id.begin(), collector.id.end(),
                  [&device] { return static_cast<uint8_t>(device()); });
  }
  return collector;
}

Result<CollectorIdentity> read_collector_identity(Fs& fs, const std::string& root,
                                                  uint64_t unix_ns) {
  CollectorIdentity collector = draw_collector_identity(unix_ns);
  COLLECT_TRY(fs.make_directories(root));
  const std::string path = fmt::format("{}/{}", root, kCollectorIdFile);
  if (!fs.exists(path)) {
    COLLECT_TRY(write_whole_file(fs, root, kCollectorIdFile, kCollectorIdTemporaryFile,
                                 text_of(collector), true));
    return collector;
  }
  const auto text = read_whole_file(fs, path, kMaxIdentityBytes);
  if (!text.ok()) return text.error();
  const std::vector<uint8_t> id = bytes_of_hex(std::string_view(*text).substr(0, text->find('\n')));
  if (id.size() != collector.id.size()) {
    return Error{Code::kDamaged,
                 path + ": not the id of a collector (32 hex digits); remove it to begin another"};
  }
  std::copy(id.begin(), id.end(), collector.id.begin());
  return collector;
}

std::string collector_name(const CollectorIdentity& collector) {
  if (!collector.is_known()) return "";
  return fmt::format("{}-{}", hex_bytes(collector.id), collector.epoch);
}

}  // namespace collect::storage
