#include "formats/rtc/meta/meta.h"

#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "formats/core/json_shape.h"
#include "formats/core/text/utf8.h"

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

// An element of the array. Numbers stay as they were written: a parser's double has 15 digits, and
// the seconds of an offset, or what an application keeps in a key of its own, may have 19.
struct Element {
  bool is_object = false;
  std::map<std::string, std::string>
      members;       // of an object: JSON texts by key; the last one counts
  std::string text;  // of anything else
};

// Takes a JSON array apart into its elements. False when the text is something else.
class ElementReader final : public nlohmann::json_sax<json> {
 public:
  static std::optional<std::vector<Element>> read(std::string_view array) {
    ElementReader reader;
    if (!json::sax_parse(array, &reader)) return std::nullopt;
    return std::move(reader.elements_);
  }

  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(uint64_t value) override { return scalar(std::to_string(value)); }
  bool number_float(double /*value*/, const std::string& text) override { return scalar(text); }
  bool string(std::string& value) override { return scalar(dump(json(value))); }
  bool binary(json::binary_t& /*value*/) override { return false; }
  bool start_array(size_t /*size*/) override {
    if (is_open_) return begin('[');
    is_open_ = true;
    return true;
  }
  bool end_array() override { return is_nested_.empty() || end(']'); }
  bool start_object(size_t /*size*/) override {
    if (!is_open_) return false;
    if (in_object_ || !is_nested_.empty()) return begin('{');
    in_object_ = true;
    elements_.push_back({true, {}, {}});
    return true;
  }
  bool end_object() override {
    if (!is_nested_.empty()) return end('}');
    in_object_ = false;
    return true;
  }
  bool key(std::string& name) override {
    if (is_nested_.empty()) {
      key_ = name;
    } else {
      separate();
      text_ += dump(json(name)) + ":";
      is_behind_key_ = true;
    }
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool scalar(std::string_view text) {
    if (!is_open_) return false;
    separate();
    text_ += text;
    return commit();
  }
  bool begin(char bracket) {
    separate();
    text_ += bracket;
    is_nested_.push_back(false);
    return true;
  }
  bool end(char bracket) {
    text_ += bracket;
    is_nested_.pop_back();
    return commit();
  }
  void separate() {
    if (std::exchange(is_behind_key_, false) || is_nested_.empty()) return;
    if (is_nested_.back()) text_ += ',';
    is_nested_.back() = true;
  }
  bool commit() {
    if (!is_nested_.empty()) return true;
    if (in_object_) {
      elements_.back().members[key_] = std::exchange(text_, {});
    } else {
      elements_.push_back({false, {}, std::exchange(text_, {})});
    }
    return true;
  }

  std::vector<Element> elements_;
  bool is_open_ = false;  // within the array
  bool in_object_ = false;
  std::string key_;
  std::string text_;             // of the value at hand
  std::vector<bool> is_nested_;  // its open brackets: whether something is in them
  bool is_behind_key_ = false;
};

json value_of(const std::string& text) {
  return json::parse(text, nullptr, false);
}

// Reads one object of the array; what cannot be used is reported in `complaints`.
class EntryReader {
 public:
  EntryReader(const Element& element, std::vector<std::string>& complaints)
      : element_(element), complaints_(complaints) {}

  std::optional<StreamInfo> read() {
    if (!element_.is_object) return refuse("an element is no object");
    const auto& members = element_.members;
    const auto id = members.find("id");
    const json number = id == members.end() ? json() : value_of(id->second);
    if (!number.is_number_unsigned()) return refuse("a stream has no id");
    info_.id = number.get<uint64_t>();
    if (info_.id < kFirstStreamId || info_.id > kMaxStreamId) {
      return refuse(fmt::format("stream id {} is not for streams", info_.id));
    }
    for (const auto& [key, text] : members) {
      if (!read_key(key, text)) return std::nullopt;
    }
    const auto type = members.find("type");
    if (type == members.end()) return std::move(info_);
    const json format = value_of(type->second);
    if (!members.contains("format") && format.is_string()) {
      info_.format = Format::parse(format.get_ref<const std::string&>());
    } else {
      info_.extra.emplace_back("type", type->second);
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
  void number(std::string_view key, const std::string& text, const json& value,
              std::optional<Decimal>& out) {
    if (!value.is_number()) {
      if (!value.is_null()) complain(key);
      return;
    }
    out = Decimal::parse(text);
    if (out) return;
    out = Decimal(value.get<double>());
    complaints_.push_back(
        fmt::format("{}: \"{}\" has more digits than can be kept: {} is read as {}", label(), key,
                    text.substr(0, 40), out->text()));
  }

  // False when the stream cannot be read at all.
  bool read_key(const std::string& key, const std::string& written) {
    if (!is_own_key(key)) {
      if (key != "type") info_.extra.emplace_back(key, written);
      return true;
    }
    const json value = value_of(written);
    if (key == "name") {
      text(key, value, info_.name);
    } else if (key == "length") {
      if (value.is_null()) return true;
      if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxPayloadBytes) {
        refuse(
            fmt::format("{}: length {} is no frame's length", label(), dump(value).substr(0, 40)));
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
      number(key, written, value, info_.gain);
    } else if (key == "offset") {
      number(key, written, value, info_.offset);
    }
    return true;
  }

  const Element& element_;
  std::vector<std::string>& complaints_;
  StreamInfo info_;
};

}  // namespace

Result<Meta> parse_meta(Bytes bytes) {
  if (bytes.size() > kMaxMetaBytes) {
    return Error{Code::kLimit, fmt::format("Meta has {} bytes", bytes.size())};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (too_deep(text)) return Error{Code::kLimit, "Meta is nested too deeply"};
  const auto elements = ElementReader::read(text);
  if (!elements) return Error{Code::kDamaged, "Meta is no JSON array"};
  const json last = elements->empty() ? json() : value_of(elements->back().text);
  if (!last.is_number_unsigned()) {
    return Error{Code::kDamaged, "Meta is no array that ends with the next free id"};
  }
  if (elements->size() - 1 > kMaxStreams) {
    return Error{Code::kLimit, fmt::format("Meta has {} streams", elements->size() - 1)};
  }
  Meta meta;
  meta.next_id = last.get<uint64_t>();
  std::set<uint64_t> ids;
  for (size_t i = 0; i + 1 < elements->size(); ++i) {
    auto info = EntryReader((*elements)[i], meta.complaints).read();
    if (!info) continue;
    if (!ids.insert(info->id).second) {
      meta.complaints.push_back(
          fmt::format("stream {} is described twice; the last one counts", info->id));
    }
    if (info->id >= meta.next_id) {
      meta.complaints.push_back(fmt::format("stream {} is not below the next free id", info->id));
    }
    meta.streams.push_back(std::move(*info));
  }
  return meta;
}

Result<std::string> stream_json(const StreamInfo& stream) {
  std::string out = fmt::format("{{\"id\":{}", stream.id);
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
  if (stream.length) out += fmt::format(",\"length\":{}", *stream.length);
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
      return Error{Code::kInvalidArgument, fmt::format("extra key {} is not free", key)};
    }
    if (too_deep(text) || value_of(text).is_discarded()) {
      return Error{Code::kInvalidArgument, fmt::format("extra key {} holds no JSON", key)};
    }
    const auto compact = ElementReader::read(fmt::format("[{{\"value\":{}}}]", text));
    out.append(",").append(dump(json(key))).append(":");
    out.append(compact->front().members.at("value"));
  }
  out += "}";
  return out;
}

}  // namespace collect::rtc
