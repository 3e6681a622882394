#include "formats/dial9/schema.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/encoding/leb128.h"
#include "formats/core/text/utf8.h"

namespace collect::dial9 {
namespace {

Error refused(std::string what) {
  return {Code::kInvalidArgument, std::move(what)};
}

Status validate_name(std::string_view name, std::string_view whose) {
  if (name.size() > kMaxNameBytes) {
    return refused(
        fmt::format("{} has {} bytes, the limit is {}", whose, name.size(), kMaxNameBytes));
  }
  if (!is_utf8(name)) return refused(std::string(whose) + " is not UTF-8");
  return {};
}

template <class T>
void append(const T& value, std::vector<uint8_t>& out) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  store_le(out.data() + at, value);
}

void append_name(std::string_view name, std::vector<uint8_t>& out) {
  append(static_cast<uint16_t>(name.size()), out);
  out.insert(out.end(), name.begin(), name.end());
}

}  // namespace

std::optional<size_t> find_header(Bytes bytes, size_t from) {
  constexpr uint8_t kHeader[kHeaderBytes] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3],
                                             kFormatVersion};
  if (from >= bytes.size()) return std::nullopt;
  const auto at = std::search(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.end(),
                              std::begin(kHeader), std::end(kHeader));
  if (at == bytes.end()) return std::nullopt;
  return static_cast<size_t>(at - bytes.begin());
}

bool looks_like_dial9(Bytes head) {
  return head.size() >= kHeaderBytes &&
         std::equal(std::begin(kMagic), std::end(kMagic), head.begin());
}

Status validate(const Schema& schema) {
  COLLECT_TRY(validate_name(schema.name, "the type's name"));
  if (schema.fields.size() > kMaxFields) {
    return refused(fmt::format("type {} has {} fields, the limit is {}", schema.name,
                               schema.fields.size(), kMaxFields));
  }
  for (const Field& field : schema.fields) {
    COLLECT_TRY(validate_name(field.name, "a field's name in type " + schema.name));
    if (!is_field_type(static_cast<uint8_t>(field.type))) {
      return refused(fmt::format("field {} has type {}, which is none", field.name,
                                 static_cast<int>(field.type)));
    }
  }
  return {};
}

Status validate(const Annotation& annotation) {
  COLLECT_TRY(validate_name(annotation.key, "the annotation's key"));
  if (annotation.value.size() > kMaxFrameBytes / 2) return refused("the annotation is too long");
  if (!is_utf8(annotation.value)) return refused("the annotation's value is not UTF-8");
  return {};
}

void append_schema_frame(const Schema& schema, std::vector<uint8_t>& out) {
  append(FrameTag::kSchema, out);
  append(schema.type_id, out);
  append_name(schema.name, out);
  append(static_cast<uint8_t>(schema.has_timestamp ? 1 : 0), out);
  append(static_cast<uint16_t>(schema.fields.size()), out);
  for (const Field& field : schema.fields) {
    append_name(field.name, out);
    append(static_cast<uint8_t>(static_cast<uint8_t>(field.type) |
                                (field.optional ? kOptionalBit : 0)),
           out);
  }
}

void append_annotations_frame(uint16_t type_id, const std::vector<Annotation>& annotations,
                              std::vector<uint8_t>& out) {
  append(FrameTag::kAnnotations, out);
  uint8_t id[kLeb128MaxBytes];
  out.insert(out.end(), id, id + write_uleb128(id, type_id));
  append(static_cast<uint16_t>(annotations.size()), out);
  for (const Annotation& annotation : annotations) {
    append(annotation.field_index, out);
    append_name(annotation.key, out);
    append(static_cast<uint32_t>(annotation.value.size()), out);
    out.insert(out.end(), annotation.value.begin(), annotation.value.end());
  }
}

}  // namespace collect::dial9
