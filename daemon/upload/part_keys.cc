#include "daemon/upload/part_keys.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/upload/s3/digests.h"
#include "formats/core/text/hex.h"
#include "storage/model/session_layout.h"

namespace collect::upload {
namespace {

constexpr size_t kHashDigits = 16;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_';
}

bool is_name(std::string_view text, bool may_have_hyphens) {
  return !text.empty() && text.size() <= kMaxPartNameBytes && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), [may_have_hyphens](char c) {
           return is_word_character(c) || (may_have_hyphens && c == '-');
         });
}

// As engines of the Hive family write what is not plain in a value, so that these show it as it
// was.
std::string device_value(std::string_view device) {
  constexpr char kHexDigits[] = "0123456789ABCDEF";
  std::string value;
  for (const char c : device) {
    if (is_word_character(c) || c == '-') {
      value += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      value += '%';
      value += kHexDigits[byte >> 4];
      value += kHexDigits[byte & 15];
    }
  }
  if (value.empty()) return "__HIVE_DEFAULT_PARTITION__";
  if (value.size() > kMaxDeviceKeyBytes) {
    value.resize(kMaxDeviceKeyBytes - kHashDigits - 1);
    value += '~' + hex_bytes(sha256(bytes_of(device))).substr(0, kHashDigits);
  }
  return value;
}

// Behind the device's.
std::string ending_of(std::string_view session, const PartName& part) {
  return fmt::format("/session={}/part={}-{}/", session, part.collector, part.epoch);
}

std::string session_of(std::string_view process_id, uint32_t recording) {
  return fmt::format("{}-{}", process_id, recording);
}

}  // namespace

Status check_part_name(const PartName& part) {
  if (!is_name(part.collector, true)) {
    return Error{Code::kDamaged,
                 fmt::format("collector id '{}': 1 to 64 letters, digits, '.', '_' and '-'",
                             part.collector.substr(0, 100))};
  }
  if (!is_name(part.epoch, false)) {
    return Error{Code::kDamaged, fmt::format("epoch '{}': 1 to 64 letters, digits, '.' and '_'",
                                             part.epoch.substr(0, 100))};
  }
  return {};
}

bool is_prefix_of(std::string_view prefix, std::string_view process_id, uint32_t recording,
                  const PartName& part) {
  return prefix.starts_with(kKeyRoot) &&
         prefix.ends_with(ending_of(session_of(process_id, recording), part));
}

PartName part_name_of(const storage::CollectorIdentity& collector) {
  if (!collector.is_known()) return {"unknown", "0"};
  return {hex_bytes(collector.id), std::to_string(collector.epoch)};
}

Result<std::string> part_prefix(const storage::SessionIdentity& identity, const PartName& part) {
  if (const Status checked = check_part_name(part); !checked.ok()) {
    return Error{Code::kInvalidArgument, checked.error().message};
  }
  const auto& id = identity.process_id;
  if (std::all_of(id.begin(), id.end(), [](uint8_t byte) { return byte == 0; })) {
    return Error{Code::kUnsupported,
                 "the session has no process id, by which its parts are distinguished from others"};
  }
  const std::string session = session_of(hex_bytes(id), identity.recording);
  // Spreads sessions over what a server keeps together; all parts of a session are in one place.
  const std::string hash = hex_bytes(sha256(bytes_of(session))).substr(0, 2);
  return fmt::format("{}{}/device={}{}", kKeyRoot, hash, device_value(identity.device_id),
                     ending_of(session, part));
}

ObjectName object_name(std::string_view path) {
  ObjectName object;
  const size_t slash = path.find('/');
  const std::string_view leaf = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (slash != std::string_view::npos) {
    const auto thread = storage::parse_thread_directory(path.substr(0, slash));
    object.name = thread ? fmt::format("thread={}", *thread) : std::string(path.substr(0, slash));
    object.name += '/';
  }
  object.name += leaf;
  object.is_compressed = leaf == storage::kIndexFile || leaf == storage::kDetailFile;
  if (object.is_compressed) object.name += ".zst";
  return object;
}

}  // namespace collect::upload
