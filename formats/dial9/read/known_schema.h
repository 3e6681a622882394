// A schema as the decoder keeps it: the frame's bytes, one byte of type and four of name offset per
// field, and the annotations as they came. At most eight bytes for each field that took three in
// the file, so a file cannot make much of little. Immutable for the visitor; lives until the next
// header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/dial9/schema.h"

namespace collect::dial9 {

class KnownSchema {
 public:
  uint16_t type_id() const { return type_id_; }
  std::string_view name() const { return text(5, name_bytes_); }
  bool has_timestamp() const { return has_timestamp_; }
  // Position among the types of the sub-stream in order of registration: 0, 1, 2, ...
  uint32_t index() const { return index_; }

  size_t fields() const { return types_.size(); }
  FieldType type(size_t field) const {
    return static_cast<FieldType>(types_[field] & ~kOptionalBit);
  }
  bool optional(size_t field) const { return (types_[field] & kOptionalBit) != 0; }
  std::string_view field_name(size_t field) const {
    const uint32_t at = name_offsets_[field];
    return text(at + 2, load_le<uint16_t>(frame_.data() + at));
  }
  // The first field of this name. Readers go by names: fields come and go between versions.
  std::optional<size_t> find(std::string_view field_name) const;
  // The type bytes with the optional bit, as in the file.
  Bytes type_bytes() const { return types_; }

  bool has_annotations() const { return !annotations_.empty(); }
  std::vector<Annotation> annotations() const;  // of all frames, in their order
  Schema to_schema() const;
  size_t state_bytes() const;

 private:
  friend class SchemaTable;
  KnownSchema() = default;
  std::string_view text(size_t at, size_t bytes) const {
    return {reinterpret_cast<const char*>(frame_.data()) + at, bytes};
  }

  uint16_t type_id_ = 0;
  bool has_timestamp_ = false;
  uint16_t name_bytes_ = 0;
  uint32_t index_ = 0;
  std::vector<uint8_t> frame_;  // from the tag to the last field, has_timestamp as 0 or 1
  std::vector<uint32_t> name_offsets_;
  std::vector<uint8_t> types_;
  std::vector<uint8_t> annotations_;  // entries one behind the other
};

// The schemas of one sub-stream by type_id. Ids may be sparse; forgetting all costs what was there.
class SchemaTable {
 public:
  // Null when the type is unknown.
  const KnownSchema* find(uint16_t type_id) const {
    return type_id < by_id_.size() ? by_id_[type_id] : nullptr;
  }
  const std::vector<std::unique_ptr<KnownSchema>>& all() const { return all_; }
  size_t max_fields() const { return max_fields_; }
  size_t state_bytes() const { return state_bytes_; }

  // `frame` is whole and valid, `name_offsets` and `types` are of its fields. Null when the id is
  // there with another schema.
  const KnownSchema* add(Bytes frame, const std::vector<uint32_t>& name_offsets,
                         const std::vector<uint8_t>& types);
  // Entries of an annotations frame, whole and valid. False when the type is unknown.
  bool annotate(uint64_t type_id, Bytes entries);
  void clear();

 private:
  std::vector<KnownSchema*> by_id_;
  std::vector<std::unique_ptr<KnownSchema>> all_;
  size_t max_fields_ = 0;
  size_t state_bytes_ = 0;
};

}  // namespace collect::dial9
