#include "formats/wtf/layout.h"

#include <algorithm>

namespace collect::wtf {
namespace {

struct Named {
  uint32_t number;
  std::string_view name;
};

constexpr Named kChunkTypes[] = {{1, "file_header"}, {2, "event_data"}};
constexpr Named kPartTypes[] = {
    {0x10000, "file_header"},         {0x20000, "json_event_buffer"},
    {0x20001, "legacy_event_buffer"}, {0x20002, "binary_event_buffer"},
    {0x30000, "string_table"},        {0x40000, "binary_resource"},
    {0x40001, "string_resource"},
};

template <size_t kCount>
std::string_view name_of(const Named (&table)[kCount], uint32_t number) {
  for (const Named& entry : table) {
    if (entry.number == number) return entry.name;
  }
  return {};
}

template <size_t kCount>
uint32_t number_of(const Named (&table)[kCount], std::string_view name) {
  for (const Named& entry : table) {
    if (entry.name == name) return entry.number;
  }
  return 0;
}

bool looks_like_json(Bytes head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  for (const char* key : {"\"wtfVersion\"", "\"wtf_version\""}) {
    if (text.find(key) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string_view chunk_type_name(uint32_t type) {
  return name_of(kChunkTypes, type);
}
std::string_view part_type_name(uint32_t type) {
  return name_of(kPartTypes, type);
}
uint32_t chunk_type_of(std::string_view name) {
  return number_of(kChunkTypes, name);
}
uint32_t part_type_of(std::string_view name) {
  return number_of(kPartTypes, name);
}

FileKind file_kind(Bytes head) {
  if (head.size() >= kFileHeaderBytes) {
    const uint32_t magic = load_le<uint32_t>(head.data());
    if (magic == kMagic) {
      const uint32_t version = load_le<uint32_t>(head.data() + 8);
      return version == kFormatVersion ? FileKind::kBinary : FileKind::kUnknown;
    }
    if (__builtin_bswap32(magic) == kMagic) {
      const uint32_t version = __builtin_bswap32(load_le<uint32_t>(head.data() + 8));
      return version == kLegacyFormatVersion ? FileKind::kLegacy : FileKind::kUnknown;
    }
  }
  return looks_like_json(head.first(std::min(head.size(), kSniffBytes))) ? FileKind::kJson
                                                                         : FileKind::kUnknown;
}

}  // namespace collect::wtf
