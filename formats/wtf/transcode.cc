#include "formats/wtf/transcode.h"

#include <algorithm>
#include <unordered_map>

#include "formats/wtf/json_cursor.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

class Transcoder {
 public:
  Transcoder(Reader& reader, Writer& writer, Findings& findings)
      : reader_(reader), writer_(writer), findings_(findings) {}

  Status run();

 private:
  Status copy(const Event& event);
  Status use_zone(const Event& event);
  Result<uint32_t> type_of(const Event& event);
  Result<uint32_t> define(const EventType& type, uint64_t offset);
  Status copy_resources();
  Arg argument_of(const Event& event, const Value& value);

  Reader& reader_;
  Writer& writer_;
  Findings& findings_;
  std::unordered_map<uint32_t, uint32_t> types_;  // EventType::index to the writer's wire id
  std::vector<uint16_t> zones_;                   // Reader's index to the writer's id; 0: not yet
  uint64_t chunk_ = 0;
  std::vector<Arg> arguments_;
  std::vector<std::string> texts_;  // that arguments_ borrows
  std::vector<std::vector<uint8_t>> arrays_;
};

Status Transcoder::run() {
  FileHeader header;
  if (reader_.header()) header = *reader_.header();
  if (!header.metadata.empty()) {
    JsonCursor cursor(header.metadata);
    if (cursor.peek() != JsonKind::kObject) header.metadata.clear();
  }
  COLLECT_TRY(writer_.begin(header));
  for (Event event; reader_.next(event);) {
    if (reader_.chunks() != chunk_) {
      chunk_ = reader_.chunks();
      COLLECT_TRY(copy_resources());
    }
    COLLECT_TRY(copy(event));
  }
  return writer_.finish();
}

// Resources are named by their number within a chunk, so what names them stays in one with them.
Status Transcoder::copy_resources() {
  bool first = true;
  for (const Part& part : reader_.chunk().parts) {
    const bool binary = part.type == static_cast<uint32_t>(PartType::kBinaryResource);
    if (!binary && part.type != static_cast<uint32_t>(PartType::kStringResource)) continue;
    if (first) COLLECT_TRY(writer_.flush());
    first = false;
    const auto added = binary ? writer_.add_binary_resource(part.bytes)
                              : writer_.add_string_resource(safe_text(text_of(part.bytes)));
    if (!added) return added.error();
  }
  return {};
}

Status Transcoder::use_zone(const Event& event) {
  if (zones_.size() <= event.zone) zones_.resize(event.zone + 1);
  if (zones_[event.zone] == 0) {
    const Zone& zone = reader_.zones()[event.zone];
    const auto text = [](const std::optional<std::string>& from) {
      return from ? Writer::Text(*from) : Writer::Text();
    };
    std::string name = zone.name.value_or("");
    if (zone.undefined) name = "zone " + std::to_string(zone.zone_id);
    auto made = writer_.create_zone(name, text(zone.type), text(zone.location));
    for (int again = 2; !made && made.code() == Code::kAlreadyExists; ++again) {
      made = writer_.create_zone(name + " (" + std::to_string(again) + ")", text(zone.type),
                                 text(zone.location));
    }
    if (!made) return made.error();
    zones_[event.zone] = *made;
  }
  return writer_.set_zone(zones_[event.zone]);
}

Result<uint32_t> Transcoder::type_of(const Event& event) {
  const auto known = types_.find(event.type->index);
  if (known != types_.end()) return known->second;
  const auto made = define(*event.type, event.offset);
  if (made) types_[event.type->index] = *made;
  return made;
}

Result<uint32_t> Transcoder::define(const EventType& type, uint64_t offset) {
  if (type.role != Role::kNone) return writer_.define_builtin(type.role);
  std::vector<Argument> arguments = type.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].name;
    const auto taken = [&] {
      return std::any_of(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(i),
                         [&](const Argument& other) { return other.name == arguments[i].name; });
    };
    for (int again = 2; taken(); ++again) arguments[i].name = name + "_" + std::to_string(again);
  }
  const std::string signature = print_signature(arguments);
  std::string name = safe_event_name(type.name);
  // A builtin event's name without its meaning: the writer needs that name for the real one.
  for (const Builtin& known : builtins()) {
    if (known.name == name) name += " (1)";
  }
  const uint16_t event_class = type.is_scope() ? kClassScope : kClassInstance;
  auto made = writer_.define(event_class, type.flags, name, signature);
  for (int again = 2; !made && made.code() == Code::kAlreadyExists; ++again) {
    made = writer_.define(event_class, type.flags, name + " (" + std::to_string(again) + ")",
                          signature);
  }
  if (made && (name != type.name || signature != print_signature(type.arguments))) {
    findings_.add(Severity::kWarning, Rule::kDefinitionName, offset,
                  "event type '" + name + "' gets names that can be written");
  }
  return made;
}

Arg Transcoder::argument_of(const Event& event, const Value& value) {
  const Argument& argument = *value.argument;
  if (argument.array) {
    if (!value.present()) return {};
    if (value.encoding == Encoding::kWords) return Arg::array(argument.type, value.elements);
    // Big-endian elements, floats excepted.
    std::vector<uint8_t>& bytes =
        arrays_.emplace_back(value.elements.begin(), value.elements.end());
    const size_t size = element_bytes(argument.type);
    if (argument.type != ArgType::kFloat32) {
      for (size_t at = 0; at < bytes.size(); at += size) {
        std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                     bytes.begin() + static_cast<ptrdiff_t>(at + size));
      }
    }
    return Arg::array(argument.type, bytes);
  }
  if (is_string(argument.type)) {
    if (!value.present()) return {};
    std::string& text = texts_.emplace_back(safe_text(value.utf8()));
    if (argument.type == ArgType::kAny && !is_json(text)) {
      findings_.add_lazily(Severity::kWarning, Rule::kAnyJson, event.offset,
                           [] { return "a value that is not JSON becomes a JSON string"; });
      std::string quoted;
      append_json_string(quoted, text);
      text = std::move(quoted);
    }
    return Arg(text);
  }
  if (argument.type == ArgType::kFloat32) return Arg(value.present() ? value.real() : 0.0f);
  return Arg(value.present() ? value.integer() : 0);
}

Status Transcoder::copy(const Event& event) {
  COLLECT_TRY(use_zone(event));
  const auto type = type_of(event);
  if (!type) return type.error();
  const uint64_t ns = uint64_t{event.time_us} * 1000;
  const size_t count = event.type->arguments.size();
  arguments_.clear();
  texts_.clear();
  arrays_.clear();
  texts_.reserve(count);  // so that what is borrowed stays where it is
  arrays_.reserve(count);
  Value value;
  for (Arguments walk = event.arguments(); walk.next(value);) {
    arguments_.push_back(argument_of(event, value));
  }
  if (event.type->role == Role::kScopeLeave) return writer_.leave(ns);
  return writer_.event(*type, ns, arguments_);
}

}  // namespace

Status transcode(Reader& reader, Writer& writer, Findings& findings) {
  return Transcoder(reader, writer, findings).run();
}

}  // namespace collect::wtf
