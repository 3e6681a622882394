#include "formats/dial9/owned.h"

namespace collect::dial9 {
namespace {

std::vector<uint64_t> to_vector(StackView stack) {
  std::vector<uint64_t> addresses(stack.size());
  for (size_t i = 0; i < addresses.size(); ++i) addresses[i] = stack[i];
  return addresses;
}

// Within lists and maps pool ids are not resolved: `pools` is null there. The depth of the
// recursion is what the decoder has let through, at most kMaxNestingDepth.
OwnedValue own(const Value& value, const Pools* pools) {
  OwnedValue owned{value.type(), {}};
  if (!value.present()) return owned;
  switch (value.type()) {
    case FieldType::kI64:
      owned.content = value.i64();
      break;
    case FieldType::kString:
    case FieldType::kBytes:
      owned.content = std::string(value.text());
      break;
    case FieldType::kPooledString: {
      PooledText pooled{value.pool_id(), std::nullopt};
      if (pools != nullptr) {
        if (const auto text = pools->string(pooled.id)) pooled.text = std::string(*text);
      }
      owned.content = std::move(pooled);
      break;
    }
    case FieldType::kPooledStackFrames: {
      PooledStack pooled{value.pool_id(), std::nullopt};
      if (pools != nullptr) {
        if (const auto stack = pools->stack(pooled.id)) pooled.addresses = to_vector(*stack);
      }
      owned.content = std::move(pooled);
      break;
    }
    case FieldType::kStackFrames:
      owned.content = to_vector(value.stack());
      break;
    case FieldType::kStringMap: {
      OwnedValue::Pairs pairs;
      StringMapView map = value.string_map();
      for (StringMapView::Pair pair; map.next(pair);) {
        pairs.emplace_back(std::string(pair.key), std::string(pair.value));
      }
      owned.content = std::move(pairs);
      break;
    }
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap: {
      std::vector<OwnedValue> elements;
      DynamicView view = value.dynamic();
      for (Value element; view.next(element);) elements.push_back(own(element, nullptr));
      owned.content = std::move(elements);
      break;
    }
    default:
      owned.content = value.u64();
      break;
  }
  return owned;
}

void put(Encoder& encoder, const OwnedValue& value);

void put_elements(Encoder& encoder, const OwnedValue& value) {
  const auto* elements = std::get_if<std::vector<OwnedValue>>(&value.content);
  const bool is_map = value.type == FieldType::kDynamicMap;
  is_map ? encoder.begin_map() : encoder.begin_list();
  if (elements != nullptr) {
    for (const OwnedValue& element : *elements) put(encoder, element);
  }
  is_map ? encoder.end_map() : encoder.end_list();
}

void put_number(Encoder& encoder, FieldType type, uint64_t number) {
  switch (type) {
    case FieldType::kF64:
      encoder.put_f64(std::bit_cast<double>(number));
      break;
    case FieldType::kBool:
      encoder.put_bool(number != 0);
      break;
    case FieldType::kU8:
      encoder.put_u8(static_cast<uint8_t>(number));
      break;
    case FieldType::kU16:
      encoder.put_u16(static_cast<uint16_t>(number));
      break;
    case FieldType::kU32:
      encoder.put_u32(static_cast<uint32_t>(number));
      break;
    default:
      encoder.put_varint(number);
      break;
  }
}

// A value whose content does not go with its type is put as an absent one, which the encoder
// refuses where the schema wants a value.
void put(Encoder& encoder, const OwnedValue& value) {
  if (!value.present()) return encoder.put_absent();
  switch (value.type) {
    case FieldType::kI64:
      if (const auto* number = std::get_if<int64_t>(&value.content))
        return encoder.put_i64(*number);
      break;
    case FieldType::kString:
      if (const auto* text = std::get_if<std::string>(&value.content))
        return encoder.put_string(*text);
      break;
    case FieldType::kBytes:
      if (const auto* text = std::get_if<std::string>(&value.content))
        return encoder.put_bytes({reinterpret_cast<const uint8_t*>(text->data()), text->size()});
      break;
    case FieldType::kPooledString:
      if (const auto* pooled = std::get_if<PooledText>(&value.content))
        return encoder.put_pooled_string_id(pooled->text ? encoder.intern(*pooled->text)
                                                         : pooled->id);
      break;
    case FieldType::kPooledStackFrames:
      if (const auto* pooled = std::get_if<PooledStack>(&value.content))
        return encoder.put_pooled_stack_id(
            pooled->addresses ? encoder.intern_stack(*pooled->addresses) : pooled->id);
      break;
    case FieldType::kStackFrames:
      if (const auto* addresses = std::get_if<std::vector<uint64_t>>(&value.content))
        return encoder.put_stack(*addresses);
      break;
    case FieldType::kStringMap:
      if (const auto* pairs = std::get_if<OwnedValue::Pairs>(&value.content)) {
        std::vector<StringPair> views;
        for (const auto& [key, text] : *pairs) views.push_back({key, text});
        return encoder.put_string_map(views);
      }
      break;
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      return put_elements(encoder, value);
    default:
      if (const auto* number = std::get_if<uint64_t>(&value.content))
        return put_number(encoder, value.type, *number);
      break;
  }
  encoder.put_absent();
}

}  // namespace

const OwnedValue* OwnedEvent::find(std::string_view field_name) const {
  for (size_t field = 0; field < schema.fields.size() && field < values.size(); ++field) {
    if (schema.fields[field].name == field_name) return &values[field];
  }
  return nullptr;
}

OwnedValue to_owned(const Value& value, const Pools& pools) {
  return own(value, &pools);
}

OwnedEvent to_owned(const Event& event) {
  OwnedEvent owned{event.schema().to_schema(), std::nullopt, {}};
  if (event.has_timestamp()) owned.timestamp_ns = event.timestamp_ns();
  owned.values.reserve(event.size());
  for (size_t field = 0; field < event.size(); ++field) {
    owned.values.push_back(to_owned(event[field], event.pools()));
  }
  return owned;
}

bool encode(Encoder& encoder, EventType type, const OwnedEvent& event) {
  if (event.timestamp_ns) {
    encoder.begin_event(type, *event.timestamp_ns);
  } else {
    encoder.begin_event(type);
  }
  for (const OwnedValue& value : event.values) put(encoder, value);
  return encoder.end_event();
}

}  // namespace collect::dial9
