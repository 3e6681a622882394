#include "formats/wtf/transcode.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/check.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

constexpr size_t kShownName = 80;  // bytes of a name in a finding
// What a verbatim copy hands to the sink, and reports, at once.
constexpr size_t kCopiedBytes = size_t{4} << 20;

class Transcoder {
 public:
  Transcoder(Reader& reader, Writer& writer, Findings& findings, const BytesDone& done)
      : reader_(reader), writer_(writer), findings_(findings), done_(done) {}

  Status run();

 private:
  Status begin();
  Status copy(const Event& event);
  Status copy_rest();
  Status delete_zone(const Event& event);
  Status use_zone(uint32_t zone);
  Result<uint16_t> create_zone(const Zone& zone);
  Status define_up_to(size_t count, uint64_t offset);
  Result<uint32_t> define(const EventType& type, uint64_t offset);
  Status copy_resources();
  Arg argument_of(const Event& event, const Value& value);

  Reader& reader_;
  Writer& writer_;
  Findings& findings_;
  const BytesDone& done_;
  std::vector<uint32_t> types_;  // EventType::index to the writer's wire id
  std::vector<uint16_t> zones_;  // Reader's index to the writer's id; 0: not yet
  uint64_t chunk_ = 0;
  std::vector<Arg> arguments_;
  std::vector<std::string> texts_;  // that arguments_ borrows
  std::vector<std::vector<uint8_t>> arrays_;
};

Status Transcoder::run() {
  COLLECT_TRY(begin());
  for (Event event; reader_.next_any(event);) {
    if (reader_.chunks() != chunk_) {
      chunk_ = reader_.chunks();
      if (done_) done_(reader_.position());
      COLLECT_TRY(copy_resources());
    }
    switch (event.type->role) {
      case Role::kDefine:
      case Role::kZoneCreate:
      case Role::kZoneSet:
        break;
      case Role::kZoneDelete:
        COLLECT_TRY(delete_zone(event));
        break;
      default:
        COLLECT_TRY(copy(event));
    }
  }
  COLLECT_TRY(copy_rest());
  if (done_) done_(reader_.position());
  return writer_.finish();
}

// The header part as it is, if the viewer takes it; else what of it can be read.
Status Transcoder::begin() {
  Findings found;
  if (!reader_.header_text().empty() && parse_header(reader_.header_text(), 0, found) &&
      found.list().empty() && is_utf8(reader_.header_text())) {
    return writer_.begin_with(reader_.header_text());
  }
  FileHeader header;
  if (reader_.header()) header = *reader_.header();
  if (!header.metadata.empty()) {
    JsonCursor cursor(header.metadata);
    if (cursor.peek() != JsonKind::kObject) header.metadata.clear();
  }
  return writer_.begin(header);
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

Result<uint16_t> Transcoder::create_zone(const Zone& zone) {
  const auto text = [](const std::optional<std::string>& from) {
    return from ? Writer::Text(*from) : Writer::Text();
  };
  std::string name = zone.name.value_or("");
  if (zone.undefined) name = fmt::format("zone {}", zone.zone_id);
  auto made = writer_.create_zone(name, text(zone.type), text(zone.location));
  for (int again = 2; !made && made.code() == Code::kAlreadyExists; ++again) {
    made = writer_.create_zone(fmt::format("{} ({})", name, again), text(zone.type),
                               text(zone.location));
  }
  return made;
}

// Zones are created in the file's order. The default zone stays out unless it is used or was
// created.
Status Transcoder::use_zone(uint32_t zone) {
  if (zones_.size() <= zone) zones_.resize(zone + 1);
  if (zones_[zone] != 0) return writer_.set_zone(zones_[zone]);
  for (uint32_t i = 0; i <= zone; ++i) {
    const Zone& known = reader_.zones()[i];
    if (zones_[i] != 0 || (i != zone && !known.created && !known.undefined)) continue;
    const auto made = create_zone(known);
    if (!made) return made.error();
    zones_[i] = *made;
  }
  return writer_.set_zone(zones_[zone]);
}

Status Transcoder::delete_zone(const Event& event) {
  Value value;
  Arguments walk = event.arguments();
  if (event.cut || !walk.next(value)) return {};
  const auto zone = reader_.zone_of_id(static_cast<uint32_t>(value.integer()));
  if (!zone) return {};  // of a zone that never was
  COLLECT_TRY(use_zone(*zone));
  return writer_.delete_zone(zones_[*zone], uint64_t{event.time_us} * 1000);
}

Status Transcoder::define_up_to(size_t count, uint64_t offset) {
  while (types_.size() < count) {
    const EventType& type = *reader_.types().all()[types_.size()];
    const auto made =
        writes_by_itself(type.role) ? writer_.define_builtin(type.role) : define(type, offset);
    if (!made) return made.error();
    types_.push_back(*made);
  }
  return {};
}

// Types and zones without an event.
Status Transcoder::copy_rest() {
  const Status defined = define_up_to(reader_.types().all().size(), reader_.position());
  if (!defined.ok()) {
    if (defined.code() != Code::kLimit) return defined;
    findings_.add(Severity::kWarning, Rule::kLimit, reader_.position(),
                  "event types without events are left out: the wire ids are used up");
  }
  for (uint32_t zone = 0; zone < reader_.zones().size(); ++zone) {
    if (reader_.zones()[zone].created) COLLECT_TRY(use_zone(zone));
  }
  return {};
}

// As the file has it, builtin events too: viewers know their names and continue from there. Only
// where the format cannot hold that, a name is changed.
Result<uint32_t> Transcoder::define(const EventType& type, uint64_t offset) {
  std::vector<Argument> arguments = type.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].name;
    const auto taken = [&] {
      return std::any_of(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(i),
                         [&](const Argument& other) { return other.name == arguments[i].name; });
    };
    for (int again = 2; taken(); ++again) arguments[i].name = fmt::format("{}_{}", name, again);
  }
  const std::string signature = print_signature(arguments);
  const std::string name = safe_event_name(type.name);
  std::string used = name;
  const uint16_t event_class = type.is_scope() ? kClassScope : kClassInstance;
  auto made = writer_.define(event_class, type.flags, used, signature);
  for (int again = 2; !made && made.code() == Code::kAlreadyExists; ++again) {
    used = fmt::format("{} ({})", name, again);
    made = writer_.define(event_class, type.flags, used, signature);
  }
  if (made && (used != type.name || signature != print_signature(type.arguments))) {
    findings_.add(Severity::kWarning, Rule::kRenamed, offset,
                  fmt::format("event type '{}' becomes '{}({})': the format cannot hold its names",
                              safe_text(type.name).substr(0, kShownName),
                              used.substr(0, kShownName), signature.substr(0, kShownName)));
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
  COLLECT_TRY(use_zone(event.zone));
  COLLECT_TRY(define_up_to(event.type->index + 1, event.offset));
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
  return writer_.event(types_[event.type->index], ns, arguments_);
}

}  // namespace

Status transcode(Reader& reader, Writer& writer, Findings& findings, const BytesDone& done) {
  return Transcoder(reader, writer, findings, done).run();
}

Result<uint64_t> rewrite(Bytes file, ByteSink& out, Findings& findings, const BytesDone& done) {
  FileReport report = check_file(file);
  if (report.kind == FileKind::kBinary && report.grade == Grade::kOk && report.viewer_loads) {
    for (size_t at = 0; at < file.size(); at += kCopiedBytes) {
      COLLECT_TRY(out.write(file.subspan(at, std::min(kCopiedBytes, file.size() - at))));
      if (done) done(std::min(at + kCopiedBytes, file.size()));
    }
    return report.events;
  }
  auto reader = Reader::open(file, findings);
  if (!reader.ok()) return reader.error();
  Writer writer(out, kFaithfulCopy);
  COLLECT_TRY(transcode(**reader, writer, findings, done));
  return writer.stats().events;
}

}  // namespace collect::wtf
