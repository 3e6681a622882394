#include "formats/dial9/read/known_schema.h"

#include <algorithm>

namespace collect::dial9 {
namespace {

constexpr size_t kTypeIdOffset = 1;
constexpr size_t kNameLengthOffset = 3;
constexpr size_t kNameOffset = 5;

// Whether two schema frames say the same; has_timestamp has been made 0 or 1 in `known`.
bool same_frame(Bytes known, Bytes frame, size_t timestamp_at) {
  if (known.size() != frame.size()) return false;
  return std::equal(known.begin(), known.begin() + static_cast<ptrdiff_t>(timestamp_at),
                    frame.begin()) &&
         known[timestamp_at] == (frame[timestamp_at] != 0) &&
         std::equal(known.begin() + static_cast<ptrdiff_t>(timestamp_at) + 1, known.end(),
                    frame.begin() + static_cast<ptrdiff_t>(timestamp_at) + 1);
}

}  // namespace

std::optional<size_t> KnownSchema::find(std::string_view field_name) const {
  for (size_t field = 0; field < fields(); ++field) {
    if (this->field_name(field) == field_name) return field;
  }
  return std::nullopt;
}

std::vector<Annotation> KnownSchema::annotations() const {
  std::vector<Annotation> all;
  ByteReader reader(annotations_);
  const auto text = [&](size_t size) {
    const Bytes own = reader.bytes(size);
    return std::string(own.begin(), own.end());
  };
  while (reader.remaining() != 0 && reader.ok()) {
    Annotation one;
    one.field_index = reader.u16();
    one.key = text(reader.u16());
    one.value = text(reader.u32());
    all.push_back(std::move(one));
  }
  return all;
}

Schema KnownSchema::to_schema() const {
  Schema schema{type_id(), std::string(name()), has_timestamp(), {}};
  schema.fields.reserve(fields());
  for (size_t field = 0; field < fields(); ++field) {
    schema.fields.push_back({std::string(field_name(field)), type(field), optional(field)});
  }
  return schema;
}

size_t KnownSchema::state_bytes() const {
  return sizeof *this + frame_.capacity() + annotations_.capacity() + types_.capacity() +
         sizeof(uint32_t) * name_offsets_.capacity();
}

const KnownSchema* SchemaTable::add(Bytes frame, const std::vector<uint32_t>& name_offsets,
                                    const std::vector<uint8_t>& types) {
  const uint16_t type_id = load_le<uint16_t>(frame.data() + kTypeIdOffset);
  const uint16_t name_bytes = load_le<uint16_t>(frame.data() + kNameLengthOffset);
  const size_t timestamp_at = kNameOffset + name_bytes;
  if (const KnownSchema* known = find(type_id)) {
    return same_frame(known->frame_, frame, timestamp_at) ? known : nullptr;
  }
  std::unique_ptr<KnownSchema> made(new KnownSchema);
  made->type_id_ = type_id;
  made->has_timestamp_ = frame[timestamp_at] != 0;
  made->name_bytes_ = name_bytes;
  made->index_ = static_cast<uint32_t>(all_.size());
  made->frame_.assign(frame.begin(), frame.end());
  made->frame_[timestamp_at] = made->has_timestamp_ ? 1 : 0;
  made->name_offsets_ = name_offsets;
  made->types_ = types;
  max_fields_ = std::max(max_fields_, types.size());
  state_bytes_ += made->state_bytes();
  if (by_id_.size() <= type_id) by_id_.resize(size_t{type_id} + 1);
  by_id_[type_id] = made.get();
  all_.push_back(std::move(made));
  return all_.back().get();
}

bool SchemaTable::annotate(uint64_t type_id, Bytes entries) {
  if (type_id >= by_id_.size() || by_id_[type_id] == nullptr) return false;
  KnownSchema& schema = *by_id_[type_id];
  state_bytes_ -= schema.state_bytes();
  schema.annotations_.insert(schema.annotations_.end(), entries.begin(), entries.end());
  state_bytes_ += schema.state_bytes();
  return true;
}

// Slot by slot, not the whole table: a file of nothing but headers and single types with high ids
// must not cost 64 K slots each.
void SchemaTable::clear() {
  for (const auto& schema : all_) by_id_[schema->type_id()] = nullptr;
  all_.clear();
  state_bytes_ = 0;
}

}  // namespace collect::dial9
