// The WTF-trace files that one session becomes: a file ends before its 32 bits of microseconds or
// its 16 bits of type numbers do, and the next begins with a timebase of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/wtf/binary/writer.h"
#include "storage/convert/convert_log.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/output_file.h"
#include "storage/manifest/session_health.h"

namespace collect::convert {

// For one session: more than a year of them.
inline constexpr size_t kMaxWtfFiles = 10000;

// One file is open at a time. Unless finish() is reached, none of them stays, also after Ctrl-C.
class WtfFiles {
 public:
  // Without start_unix_ns the first file's timebase is 0.
  WtfFiles(const storage::Manifest& session, std::string output);
  WtfFiles(const WtfFiles&) = delete;
  WtfFiles& operator=(const WtfFiles&) = delete;

  // kLimit: more than kMaxWtfFiles. kAlreadyExists: of the second and later ones, when the first
  // was not there before.
  Status begin(uint64_t first_ns);
  Status end();
  void finish(ConvertLog& log);

  bool is_open() const { return writer_ != nullptr; }
  wtf::Writer& writer() { return *writer_; }
  uint64_t epoch_ns() const { return epoch_ns_; }
  uint64_t last_ns() const { return epoch_ns_ + uint64_t{wtf::kMaxTimeUs} * 1000; }

 private:
  std::string path_of(size_t number) const;
  std::optional<uint64_t> unix_of(uint64_t ns) const;
  wtf::FileHeader header_at(uint64_t first_ns, uint64_t& epoch_ns);

  const storage::SessionIdentity identity_;
  const storage::SessionHealth health_;
  std::vector<std::string> missing_;  // from the session's own input
  const std::string output_;
  bool replaces_ = false;
  uint64_t first_epoch_ns_ = 0;
  uint64_t epoch_ns_ = 0;
  std::optional<storage::OutputFile> file_;
  std::unique_ptr<wtf::Writer> writer_;
  std::vector<std::pair<std::string, uint64_t>> written_;
  std::vector<storage::Leftover> parts_;  // the same, until finish()
};

}  // namespace collect::convert
