// The XML of S3's answers, as a small tree. The bytes come from a server: no document types and no
// entities of its own, and every size has a bound. No state; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

namespace collect::upload {

inline constexpr size_t kMaxXmlBytes = 8u << 20;  // a list of 1000 keys of 1024 bytes, escaped
inline constexpr size_t kMaxXmlElements = 50'000;
inline constexpr size_t kMaxXmlDepth = 16;

struct XmlElement {
  std::string name{};  // without a prefix
  std::string text{};
  std::vector<XmlElement> children{};

  const XmlElement* child(std::string_view wanted) const;  // the first of that name, or null
  std::string child_text(std::string_view wanted) const;   // empty without one
  // kDamaged: no such child, or no number.
  Result<uint64_t> child_number(std::string_view wanted) const;
};

// The root. kDamaged with the offset; kLimit.
Result<XmlElement> read_xml(std::string_view xml);

std::string escape_xml(std::string_view text);

}  // namespace collect::upload
