#include "formats/rtc/meta.h"

#include <nlohmann/json.hpp>
#include <set>

#include "formats/core/json_shape.h"
#include "formats/core/utf8.h"

namespace collect::rtc {
namespace {

using nlohmann::json;

constexpr std::string_view kOwnKeys[] = {"id",    "name",  "length", "cont", "format",
                                         "clock", "delta", "stream", "gain", "offset"};

bool is_own_key(std::string_view key) {
  for (const std::string_view own : kOwnKeys) {
    if (key == own) return true;
  }
  return false;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The parser keeps one level of its stack per bracket; this bounds it before it starts.
bool too_deep(std::string_view text) {
  return !check_json_shape(text, {kMaxMetaDepth, kMaxMetaBytes}).ok();
}

std::optional<Decimal> to_decimal(const json& number) {
  if (number.is_number_unsigned() && number.get<uint64_t>() > INT64_MAX) {
    return Decimal(static_cast<double>(number.get<uint64_t>()));
  }
  if (number.is_number_integer()) return Decimal(number.get<int64_t>());
  if (number.is_number_float()) return Decimal(number.get<double>());
  return std::nullopt;
}

// Reads one object of the array; what cannot be used is said in `complaints`.
class EntryReader {
 public:
  EntryReader(const json& object, std::vector<std::string>& complaints)
      : object_(object), complaints_(complaints) {}

  std::optional<StreamInfo> read() {
    if (!object_.is_object()) return refuse("an element is no object");
    const auto id = object_.find("id");
    if (id == object_.end() || !id->is_number_unsigned()) return refuse("a stream has no id");
    info_.id = id->get<uint64_t>();
    if (info_.id < kFirstStreamId || info_.id > kMaxStreamId) {
      return refuse("stream id " + std::to_string(info_.id) + " is not for streams");
    }
    for (const auto& [key, value] : object_.items()) {
      if (!read_key(key, value)) return std::nullopt;
    }
    const auto type = object_.find("type");
    if (type != object_.end() && object_.find("format") == object_.end() && type->is_string()) {
      info_.format = Format::parse(type->get_ref<const std::string&>());
    } else if (type != object_.end()) {
      info_.extra.emplace_back("type", dump(*type));
    }
    return std::move(info_);
  }

 private:
  std::nullopt_t refuse(std::string sentence) {
    complaints_.push_back(std::move(sentence) + "; the entry is left out");
    return std::nullopt;
  }
  std::string label() const {
    std::string text = "stream ";
    text.append(std::to_string(info_.id));
    return text;
  }
  void complain(std::string_view key) {
    std::string sentence = label();
    sentence.append(": \"").append(key).append("\" is of the wrong type and is ignored");
    complaints_.push_back(std::move(sentence));
  }
  void text(std::string_view key, const json& value, std::string& out) {
    if (value.is_string()) {
      out = value.get<std::string>();
    } else if (!value.is_null()) {
      complain(key);
    }
  }
  void number(std::string_view key, const json& value, std::optional<Decimal>& out) {
    out = to_decimal(value);
    if (!out && !value.is_null()) complain(key);
  }

  // False when the stream cannot be read at all.
  bool read_key(const std::string& key, const json& value) {
    if (key == "name") {
      text(key, value, info_.name);
    } else if (key == "length") {
      if (value.is_null()) return true;
      if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxPayloadBytes) {
        refuse(label() + ": length " + dump(value).substr(0, 40) + " is no frame's length");
        return false;
      }
      info_.length = static_cast<uint32_t>(value.get<uint64_t>());
    } else if (key == "cont") {
      if (value.is_boolean()) {
        info_.cont = value.get<bool>();
      } else if (!value.is_null()) {
        complain(key);
      }
    } else if (key == "format") {
      std::string format = "raw";
      text(key, value, format);
      info_.format = Format::parse(format);
    } else if (key == "clock") {
      if (value.is_boolean()) {
        info_.is_clock = value.get<bool>();
      } else {
        text(key, value, info_.clock);
      }
    } else if (key == "delta") {
      text(key, value, info_.delta);
    } else if (key == "stream") {
      text(key, value, info_.stream);
    } else if (key == "gain") {
      number(key, value, info_.gain);
    } else if (key == "offset") {
      number(key, value, info_.offset);
    } else if (key != "id" && key != "type") {
      info_.extra.emplace_back(key, dump(value));
    }
    return true;
  }

  const json& object_;
  std::vector<std::string>& complaints_;
  StreamInfo info_;
};

}  // namespace

Result<Meta> parse_meta(Bytes bytes) {
  if (bytes.size() > kMaxMetaBytes) {
    return Error{Code::kLimit, "Meta has " + std::to_string(bytes.size()) + " bytes"};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (too_deep(text)) return Error{Code::kLimit, "Meta is nested too deeply"};
  const json array = json::parse(text, nullptr, false);
  if (array.is_discarded()) return Error{Code::kDamaged, "Meta is no valid JSON"};
  if (!array.is_array() || array.empty() || !array.back().is_number_unsigned()) {
    return Error{Code::kDamaged, "Meta is no array that ends with the next free id"};
  }
  if (array.size() - 1 > kMaxStreams) {
    return Error{Code::kLimit, "Meta has " + std::to_string(array.size() - 1) + " streams"};
  }
  Meta meta;
  meta.next_id = array.back().get<uint64_t>();
  std::set<uint64_t> ids;
  for (size_t i = 0; i + 1 < array.size(); ++i) {
    auto info = EntryReader(array[i], meta.complaints).read();
    if (!info) continue;
    if (!ids.insert(info->id).second) {
      meta.complaints.push_back("stream " + std::to_string(info->id) +
                                " is described twice; the last one counts");
    }
    if (info->id >= meta.next_id) {
      meta.complaints.push_back("stream " + std::to_string(info->id) +
                                " is not below the next free id");
    }
    meta.streams.push_back(std::move(*info));
  }
  return meta;
}

Result<std::string> stream_json(const StreamInfo& stream) {
  std::string out = "{\"id\":" + std::to_string(stream.id);
  Status status;
  const auto put_text = [&](const char* key, const std::string& text) {
    const Bytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (!is_utf8(bytes)) {
      status = Error{Code::kInvalidArgument, std::string(key) + " is no UTF-8"};
      return;
    }
    out.append(",\"").append(key).append("\":").append(dump(json(text)));
  };
  if (!stream.name.empty()) put_text("name", stream.name);
  if (stream.length) out += ",\"length\":" + std::to_string(*stream.length);
  if (stream.cont) out += ",\"cont\":true";
  if (stream.is_clock) {
    out += ",\"clock\":true";
  } else if (!stream.clock.empty()) {
    put_text("clock", stream.clock);
  }
  if (stream.format.text != "raw") put_text("format", stream.format.text);
  if (stream.gain) out += ",\"gain\":" + stream.gain->text();
  if (stream.offset) out += ",\"offset\":" + stream.offset->text();
  if (!stream.delta.empty()) put_text("delta", stream.delta);
  if (!stream.stream.empty()) put_text("stream", stream.stream);
  COLLECT_TRY(status);
  for (const auto& [key, text] : stream.extra) {
    const Bytes bytes(reinterpret_cast<const uint8_t*>(key.data()), key.size());
    if (is_own_key(key) || !is_utf8(bytes)) {
      return Error{Code::kInvalidArgument, "extra key " + key + " is not free"};
    }
    const json value =
        too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
    if (value.is_discarded()) {
      return Error{Code::kInvalidArgument, "extra key " + key + " holds no JSON"};
    }
    out.append(",").append(dump(json(key))).append(":").append(dump(value));
  }
  out += "}";
  return out;
}

}  // namespace collect::rtc
