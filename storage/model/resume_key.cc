#include "storage/model/resume_key.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "formats/core/text/hex.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr std::string_view kFirstLine = "collect resume key 1\n";
constexpr std::string_view kLastLine = "end\n";
constexpr size_t kMaxKeyFileBytes = 512;

std::string text_of(const ResumeKey& key) {
  std::string text(kFirstLine);
  text += fmt::format("{}\n{}\n", hex_bytes(key.bytes), key.owner);
  text += kLastLine;
  return text;
}

// Takes what is before the next line end off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

bool parse_hex(std::string_view text, std::array<uint8_t, 16>& bytes) {
  const std::vector<uint8_t> parsed = bytes_of_hex(text);
  if (text.size() != 2 * bytes.size() || parsed.size() != bytes.size()) return false;
  std::copy(parsed.begin(), parsed.end(), bytes.begin());
  return true;
}

}  // namespace

Status write_resume_key(Fs& fs, const std::string& directory, const ResumeKey& key, bool durable) {
  if (key.owner.size() > kMaxResumeOwnerBytes || key.owner.find('\n') != std::string::npos) {
    return Error{Code::kInvalidArgument, "a resume key's owner is one line"};
  }
  auto file = fs.open(fmt::format("{}/{}", directory, kResumeKeyFile), OpenMode::kCreatePrivate);
  if (!file.ok()) return file.error();
  const std::string text = text_of(key);
  const Bytes parts[] = {Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size())};
  COLLECT_TRY((*file)->write_at(0, parts));
  // Its name is synced with the first manifest's, right behind it.
  return durable ? (*file)->sync() : Status();
}

Result<ResumeKey> read_resume_key(Fs& fs, const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kResumeKeyFile);
  auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  std::vector<uint8_t> bytes(kMaxKeyFileBytes);
  const auto got = (*file)->read_at(0, bytes);
  if (!got.ok()) return got.error();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), *got);
  ResumeKey key;
  // Nothing of it is in the message, which may be logged.
  const Error damaged{Code::kDamaged, path + ": not a whole resume key"};
  if (!text.starts_with(kFirstLine)) return damaged;
  text.remove_prefix(kFirstLine.size());
  if (!parse_hex(take_line(text), key.bytes)) return damaged;
  key.owner = take_line(text);
  if (key.owner.size() > kMaxResumeOwnerBytes || text != kLastLine) return damaged;
  return key;
}

Status remove_resume_key(Fs& fs, const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kResumeKeyFile);
  return fs.exists(path) ? fs.remove_file(path) : Status();
}

}  // namespace collect::storage
