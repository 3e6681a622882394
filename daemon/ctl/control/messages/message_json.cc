#include "daemon/ctl/control/messages/message_json.h"

#include <fmt/core.h>

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/rpc/status.pb.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "daemon/ctl/control/messages/status_code.h"
#include "formats/core/text/lower_case.h"
#include "formats/core/text/nearest_word.h"
#include "storage/select/time_words.h"

namespace collect::ctl {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

constexpr double kSecondNs = 1e9;
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;  // of google.protobuf.Duration

// Where a value's own word misleads: the same as in tables and in manifests.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"SESSION_STATE_ACTIVE", "recording"},
    {"AGENT_STATE_CONNECTED", "idle"},
    {"AGENT_STATE_DIALING", "dialling"},
};

// "AgentState" -> "AGENT_STATE_".
std::string prefix_of(const pb::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return prefix + "_";
}

bool is_duration(const FieldDescriptor& field) {
  return field.message_type() != nullptr &&
         field.message_type()->full_name() == "google.protobuf.Duration";
}

// "version" is the dialect's own: Stats.version is the program's.
std::string key_of(const FieldDescriptor& field) {
  if (is_duration(field)) return field.name() + "_s";
  return field.name() == "version" ? "collector_version" : field.name();
}

// A page of a list is never shown by itself.
bool is_shown(const FieldDescriptor& field) {
  return field.name() != "next_page_token";
}

double seconds_of(const pb::Duration& duration) {
  return static_cast<double>(duration.seconds()) + duration.nanos() / kSecondNs;
}

// Null where there is nothing to show: a time that no calendar has.
Json json_of_part(const pb::Message& part) {
  if (const auto* time = dynamic_cast<const pb::Timestamp*>(&part)) {
    const std::string text = select::rfc3339_text(time->seconds(), time->nanos());
    return text.empty() ? Json() : Json(text);
  }
  if (const auto* duration = dynamic_cast<const pb::Duration*>(&part)) return seconds_of(*duration);
  if (const auto* status = dynamic_cast<const google::rpc::Status*>(&part)) {
    return error_json({code_of(status->code()), status->message()});
  }
  return json_of(part);
}

// For a repeated field the element `at`.
Json json_of_value(const pb::Message& message, const FieldDescriptor& field, int at) {
  const pb::Reflection& of = *message.GetReflection();
  const auto value = [&](auto single, auto repeated) {
    return field.is_repeated() ? Json((of.*repeated)(message, &field, at))
                               : Json((of.*single)(message, &field));
  };
  using Of = pb::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return value(&Of::GetInt32, &Of::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return value(&Of::GetInt64, &Of::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return value(&Of::GetUInt32, &Of::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return value(&Of::GetUInt64, &Of::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return value(&Of::GetDouble, &Of::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return value(&Of::GetFloat, &Of::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return value(&Of::GetBool, &Of::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_STRING:
      return value(&Of::GetString, &Of::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_ENUM:
      return enum_word(field.is_repeated() ? *of.GetRepeatedEnum(message, &field, at)
                                           : *of.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return json_of_part(field.is_repeated() ? of.GetRepeatedMessage(message, &field, at)
                                          : of.GetMessage(message, &field));
}

bool is_absent(const pb::Message& message, const FieldDescriptor& field) {
  const pb::Reflection& of = *message.GetReflection();
  if (field.has_presence()) return !of.HasField(message, &field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return of.GetString(message, &field).empty();
  }
  return field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
         of.GetEnumValue(message, &field) == 0;  // UNSPECIFIED
}

// ---- reading

// Fills one message from one object; `where_` is its place in the document.
class MessageReader {
 public:
  MessageReader(pb::Message& message, std::string where)
      : message_(message), of_(*message.GetReflection()), where_(std::move(where)) {}

  Status read(const Json& object) {
    if (!object.is_object()) return wrong(where_, "an object {…} is wanted");
    for (const auto& [key, value] : object.items()) {
      const FieldDescriptor* field = find(key);
      if (field == nullptr) return unknown(key);
      const std::string where = where_.empty() ? key : fmt::format("{}.{}", where_, key);
      if (!field->is_repeated()) {
        COLLECT_TRY(read_value(*field, value, where));
        continue;
      }
      if (!value.is_array()) return wrong(where, "a list […] is wanted");
      for (size_t i = 0; i < value.size(); ++i) {
        COLLECT_TRY(read_value(*field, value[i], fmt::format("{}[{}]", where, i)));
      }
    }
    return {};
  }

 private:
  static Error wrong(const std::string& where, const std::string& what) {
    return Error{Code::kInvalidArgument, (where.empty() ? "" : where + ": ") + what};
  }

  const FieldDescriptor* find(std::string_view key) const {
    const pb::Descriptor& type = *message_.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      if (is_shown(*type.field(i)) && key_of(*type.field(i)) == key) return type.field(i);
    }
    return nullptr;
  }

  Error unknown(const std::string& key) const {
    const pb::Descriptor& type = *message_.GetDescriptor();
    std::vector<std::string> names;
    for (int i = 0; i < type.field_count(); ++i) names.push_back(key_of(*type.field(i)));
    return wrong(where_, fmt::format("there is no \"{}\"{}", key, nearest(key, names)));
  }

  // "; did you mean X?", or all of them.
  static std::string nearest(const std::string& word, const std::vector<std::string>& known) {
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    const std::string_view near = nearest_word(word, candidates.data(), candidates.size());
    if (!near.empty()) return fmt::format("; did you mean {}?", near);
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    return "; there is " + list;
  }

  template <class Number>
  Status put_number(const FieldDescriptor& field, const Json& value, const std::string& where,
                    void (pb::Reflection::*set)(pb::Message*, const FieldDescriptor*, Number)
                        const) {
    constexpr Number kMin = std::numeric_limits<Number>::min();
    constexpr Number kMax = std::numeric_limits<Number>::max();
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() ? !std::in_range<Number>(value.get<uint64_t>())
                                    : !std::in_range<Number>(value.get<int64_t>()))) {
      return wrong(where, fmt::format("a whole number from {} to {} is wanted", kMin, kMax));
    }
    (of_.*set)(&message_, &field, value.get<Number>());
    return {};
  }

  Status put_text(const FieldDescriptor& field, const Json& value, const std::string& where) {
    if (!value.is_string()) return wrong(where, "a text \"…\" is wanted");
    if (field.is_repeated()) {
      of_.AddString(&message_, &field, value.get<std::string>());
    } else {
      of_.SetString(&message_, &field, value.get<std::string>());
    }
    return {};
  }

  Status put_enum(const FieldDescriptor& field, const Json& value, const std::string& where) {
    std::vector<std::string> words;
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const pb::EnumValueDescriptor& one = *field.enum_type()->value(i);
      if (one.number() == 0) continue;
      words.push_back(enum_word(one));
      if (value == words.back()) {
        of_.SetEnum(&message_, &field, &one);
        return {};
      }
    }
    const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    return wrong(where,
                 fmt::format("\"{}\" is not one of its words{}", word, nearest(word, words)));
  }

  Status put_message(const FieldDescriptor& field, const Json& value, const std::string& where) {
    if (is_duration(field)) {
      const double seconds = value.is_number() ? value.get<double>() : -1;
      if (!(seconds >= 0 && seconds <= static_cast<double>(kMaxDurationSeconds))) {
        return wrong(where, "seconds are wanted, such as 60 or 0.25");
      }
      auto& duration = static_cast<pb::Duration&>(*of_.MutableMessage(&message_, &field));
      const auto whole = static_cast<int64_t>(seconds);
      const auto nanos =
          static_cast<int32_t>((seconds - static_cast<double>(whole)) * kSecondNs + 0.5);
      duration.set_seconds(nanos == 1'000'000'000 ? whole + 1 : whole);
      duration.set_nanos(nanos == 1'000'000'000 ? 0 : nanos);
      return {};
    }
    pb::Message* const part = field.is_repeated() ? of_.AddMessage(&message_, &field)
                                                  : of_.MutableMessage(&message_, &field);
    return MessageReader(*part, where).read(value);
  }

  Status read_value(const FieldDescriptor& field, const Json& value, const std::string& where) {
    // Lists hold texts or messages, in all that is read.
    const bool is_part = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
                         field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field.is_repeated() && !is_part) return wrong(where, "it cannot be given");
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return put_text(field, value, where);
      case FieldDescriptor::CPPTYPE_ENUM:
        return put_enum(field, value, where);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return put_message(field, value, where);
      case FieldDescriptor::CPPTYPE_UINT32:
        return put_number<uint32_t>(field, value, where, &pb::Reflection::SetUInt32);
      case FieldDescriptor::CPPTYPE_UINT64:
        return put_number<uint64_t>(field, value, where, &pb::Reflection::SetUInt64);
      case FieldDescriptor::CPPTYPE_INT32:
        return put_number<int32_t>(field, value, where, &pb::Reflection::SetInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return put_number<int64_t>(field, value, where, &pb::Reflection::SetInt64);
      case FieldDescriptor::CPPTYPE_BOOL:
        if (!value.is_boolean()) return wrong(where, "true or false is wanted");
        of_.SetBool(&message_, &field, value.get<bool>());
        return {};
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        break;  // no message that is read has one
    }
    return wrong(where, "it cannot be given");
  }

  pb::Message& message_;
  const pb::Reflection& of_;
  const std::string where_;
};

}  // namespace

std::string enum_word(const pb::EnumValueDescriptor& value) {
  for (const auto& [name, word] : kWords) {
    if (value.name() == name) return std::string(word);
  }
  std::string word = value.name();
  if (const std::string prefix = prefix_of(*value.type()); word.starts_with(prefix)) {
    word.erase(0, prefix.size());
  }
  return lower_case(word);
}

Json json_of(const pb::Message& message) {
  Json object = Json::object();
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!is_shown(field)) continue;
    if (field.is_repeated()) {
      Json list = Json::array();
      const int size = message.GetReflection()->FieldSize(message, &field);
      for (int at = 0; at < size; ++at) list.push_back(json_of_value(message, field, at));
      object[key_of(field)] = std::move(list);
    } else if (!is_absent(message, field)) {
      Json value = json_of_value(message, field, 0);
      if (!value.is_null()) object[key_of(field)] = std::move(value);
    }
  }
  return object;
}

std::string message_line(const pb::Message& message) {
  Json document = json_document();
  document.update(json_of(message));
  return json_line(document);
}

Status from_json(const std::string& text, pb::Message& message) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Error{Code::kInvalidArgument, fmt::format("not JSON, at byte {}", error.byte)};
  }
  if (document.is_object()) {
    const auto version = document.find("version");
    if (version != document.end() && *version != kJsonVersion) {
      return Error{Code::kInvalidArgument,
                   fmt::format("version {} is not known, only {}", version->dump(), kJsonVersion)};
    }
    if (version != document.end()) document.erase(version);
  }
  return MessageReader(message, "").read(document);
}

}  // namespace collect::ctl
