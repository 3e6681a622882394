#include "formats/wtf/binary/event.h"

#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

template <class T>
T load(Encoding encoding, const uint8_t* at) {
  T value = load_le<T>(at);
  if (encoding == Encoding::kLegacy) {
    if constexpr (sizeof(T) == 2)
      value = static_cast<T>(__builtin_bswap16(static_cast<uint16_t>(value)));
    if constexpr (sizeof(T) == 4)
      value = static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
  }
  return value;
}

// A number of `type` at `at`, widened.
int64_t widened(ArgType type, Encoding encoding, const uint8_t* at) {
  switch (type) {
    case ArgType::kBool:
      return load<uint8_t>(encoding, at) != 0 ? 1 : 0;
    case ArgType::kInt8:
      return load<int8_t>(encoding, at);
    case ArgType::kUint8:
    case ArgType::kChar:
      return load<uint8_t>(encoding, at);
    case ArgType::kInt16:
      return load<int16_t>(encoding, at);
    case ArgType::kUint16:
    case ArgType::kWchar:
      return load<uint16_t>(encoding, at);
    case ArgType::kInt32:
      return load<int32_t>(encoding, at);
    default:
      return load<uint32_t>(encoding, at);
  }
}

}  // namespace

int64_t Value::integer() const {
  uint8_t bytes[4];
  store_le(bytes, word);
  return widened(argument->type, Encoding::kWords, bytes);
}

float Value::real() const {
  return std::bit_cast<float>(word);
}

int64_t Value::element(size_t i) const {
  return widened(argument->type, encoding, elements.data() + i * element_bytes(argument->type));
}

// Legacy files hold floats in the writer's own order, which is little-endian in practice.
float Value::real_element(size_t i) const {
  return load_le<float>(elements.data() + i * 4);
}

std::string Value::utf8() const {
  if (!present()) return {};
  if (is_text()) {
    if (encoding == Encoding::kLegacy && argument->type == ArgType::kAscii) {
      return latin1_to_utf8(text);
    }
    return is_utf8(text) ? std::string(text) : safe_text(text);
  }
  const size_t units = argument->array ? count : 1;
  const auto unit = [&](size_t i) {
    return static_cast<uint32_t>(argument->array ? element(i) : integer());
  };
  std::string out;
  for (size_t i = 0; i < units; ++i) {
    uint32_t code = unit(i);
    if (code >= 0xD800 && code < 0xDC00 && i + 1 < units) {
      const uint32_t low = unit(i + 1);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        ++i;
      }
    }
    append_code_point(code, out);
  }
  return out;
}

bool Arguments::next(Value& value) {
  if (index_ == type_->arguments.size()) return false;
  const Argument& argument = type_->arguments[index_++];
  value.argument = &argument;
  value.encoding = encoding_;
  value.state = Value::State::kPresent;
  if (encoding_ == Encoding::kWords) {
    next_word(argument, value);
  } else {
    next_legacy(argument, value);
  }
  return true;
}

void Arguments::next_word(const Argument& argument, Value& value) {
  if (bytes_.size() < 4 || at_ > bytes_.size() - 4) {
    value.state = Value::State::kCut;
    at_ = uint64_t{bytes_.size()} + 4;
    return;
  }
  value.word = load_le<uint32_t>(bytes_.data() + at_);
  at_ += 4;
  if (argument.array) {
    value.count = 0;
    value.elements = {};
    if (value.word == kNullOrdinal) {
      value.state = Value::State::kNull;
      return;
    }
    const uint64_t size = uint64_t{value.word} * element_bytes(argument.type);
    if (size > bytes_.size() - at_) {
      value.state = Value::State::kCut;
      at_ = uint64_t{bytes_.size()} + 4;
      return;
    }
    value.count = value.word;
    value.elements = bytes_.subspan(at_, size);
    at_ += (size + 3) / 4 * 4;
    return;
  }
  if (!is_string(argument.type)) return;
  value.text = {};
  if (value.word == kNullOrdinal) {
    value.state = Value::State::kNull;
  } else if (value.word == kEmptyOrdinal) {
    if (argument.type == ArgType::kAny) value.state = Value::State::kEmptyAny;
  } else if (const auto found = strings_->find(value.word); !found) {
    value.state = Value::State::kBadOrdinal;
  } else if (found->empty()) {
    value.state = Value::State::kEmptyEntry;
  } else {
    value.text = *found;
  }
}

bool Arguments::take_legacy(size_t count, Bytes& bytes) {
  if (at_ > bytes_.size() || count > bytes_.size() - at_) {
    at_ = uint64_t{bytes_.size()} + 1;
    return false;
  }
  bytes = bytes_.subspan(at_, count);
  at_ += count;
  return true;
}

void Arguments::next_legacy(const Argument& argument, Value& value) {
  Bytes bytes;
  const auto cut = [&] { value.state = Value::State::kCut; };
  if (argument.array) {
    value.count = 0;
    if (!take_legacy(4, bytes)) return cut();
    const uint32_t count = load<uint32_t>(Encoding::kLegacy, bytes.data());
    const uint64_t size = uint64_t{count} * element_bytes(argument.type);
    if (!take_legacy(size, value.elements)) return cut();
    value.count = count;
    return;
  }
  if (is_string(argument.type)) {
    value.text = {};
    if (!take_legacy(2, bytes)) return cut();
    uint16_t size = load<uint16_t>(Encoding::kLegacy, bytes.data());
    if (size == 0) {
      value.state = Value::State::kNull;
      return;
    }
    if (argument.type != ArgType::kAscii) {  // that was the number of characters
      if (!take_legacy(2, bytes)) return cut();
      size = load<uint16_t>(Encoding::kLegacy, bytes.data());
    }
    if (!take_legacy(size, bytes)) return cut();
    value.text = text_of(bytes);
    return;
  }
  const size_t size = element_bytes(argument.type);
  if (!take_legacy(size, bytes)) return cut();
  value.word = argument.type == ArgType::kFloat32
                   ? load_le<uint32_t>(bytes.data())
                   : static_cast<uint32_t>(widened(argument.type, Encoding::kLegacy, bytes.data()));
}

std::optional<Value> Event::argument(std::string_view name) const {
  Value value;
  for (Arguments walk = arguments(); walk.next(value);) {
    if (value.argument->name == name) return value;
  }
  return std::nullopt;
}

}  // namespace collect::wtf
