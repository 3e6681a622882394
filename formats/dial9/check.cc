#include "formats/dial9/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "formats/core/text/printable.h"
#include "formats/core/text/utf8.h"

namespace collect::dial9 {
namespace {

// Field names of schemas with more fields than this are not compared with each other.
constexpr size_t kMaxComparedFields = 4096;

std::string text_of(uint64_t number) {
  return std::to_string(number);
}

// A name of the stream's within a sentence; it may have 64 KiB.
std::string text_of(std::string_view name) {
  constexpr size_t kShownBytes = 100;
  return printable(name, kShownBytes);
}

class Checker : public Visitor {
 public:
  Checker(const Decoder& decoder, Report& report) : decoder_(decoder), report_(report) {}

  void on_header(uint64_t) { end_sub_stream(); }

  void on_schema(FrameRange range, const KnownSchema& schema) {
    ++report_.schemas;
    if (schema.index() < kinds_.size()) return;  // repeated
    Kind kind;
    kind.schema = &schema;
    kind.metadata = schema.name() == "SegmentMetadataEvent";
    if (schema.name() == "ClockSyncEvent" && schema.has_timestamp())
      kind.realtime = schema.find("realtime_ns");
    kinds_.push_back(kind);
    check_field_names(range, schema);
  }

  void on_event(const Event& event) {
    Kind& kind = kinds_[event.schema().index()];
    ++kind.events;
    if (event.has_timestamp()) {
      note_time(event, kind);
    } else {
      ++report_.times.events_without_time;
    }
    for (size_t field = 0; field < event.size(); ++field) check_value(event, field);
  }

  void on_strings(FrameRange range, StringPoolView strings) {
    ++report_.string_pools;
    report_.pool_strings += strings.size();
    for (StringPoolView::Entry entry; strings.next(entry);) check_text(range, entry.text);
    check_redefinition(range, "string", decoder_.pools().strings, strings_seen_, strings.size());
  }

  void on_stacks(FrameRange range, StackPoolView stacks) {
    ++report_.stack_pools;
    report_.pool_stacks += stacks.size();
    check_redefinition(range, "stack", decoder_.pools().stacks, stacks_seen_, stacks.size());
  }

  void on_reset(FrameRange, uint64_t) { ++report_.resets; }

  void on_annotations(FrameRange range, const AnnotationsView& notes) {
    ++report_.annotations;
    if (!notes.known) {
      report_.findings.add_lazily(Severity::kWarning, Check::kAnnotationType, range.offset, [&] {
        return fmt::format("annotations of type_id {}, which has no schema so far, are left out",
                           text_of(notes.type_id));
      });
      return;
    }
    const KnownSchema* schema = decoder_.schemas().find(static_cast<uint16_t>(notes.type_id));
    notes.for_each([&](uint16_t field, std::string_view, std::string_view value) {
      check_text(range, value);
      if (field < schema->fields()) return;
      report_.findings.add_lazily(Severity::kWarning, Check::kAnnotationField, range.offset, [&] {
        return fmt::format("an annotation is for field {} of {}, which has {} fields",
                           text_of(field), text_of(schema->name()), text_of(schema->fields()));
      });
    });
  }

  // Adds the counts by type to the counts by name. Before the decoder forgets the schemas.
  void end_sub_stream() {
    for (const Kind& kind : kinds_) {
      if (kind.events == 0) continue;
      for (const uint8_t type : kind.schema->type_bytes()) report_.field_types[type] += kind.events;
      count_name(kind.schema->name(), kind.events);
    }
    kinds_.clear();
    strings_seen_ = stacks_seen_ = 0;
    newest_in_sub_stream_ = 0;
  }

 private:
  struct Kind {
    const KnownSchema* schema = nullptr;
    uint64_t events = 0;
    bool metadata = false;
    std::optional<size_t> realtime;  // field of a ClockSyncEvent
  };

  void count_name(std::string_view name, uint64_t events) {
    std::string key(name);
    const auto known = report_.events_by_name.find(key);
    if (known != report_.events_by_name.end()) {
      known->second += events;
    } else if (report_.events_by_name.size() < kMaxCountedNames &&
               name_bytes_ + name.size() <= kMaxCountedNameBytes) {
      name_bytes_ += name.size();
      report_.events_by_name.emplace(std::move(key), events);
    } else {
      if (report_.events_of_other_names == 0) {
        report_.findings.add_lazily(Severity::kNote, Check::kUncountedNames, 0, [] {
          return std::string("there are more event names than are counted one by one");
        });
      }
      report_.events_of_other_names += events;
    }
  }

  void note_time(const Event& event, const Kind& kind) {
    TimeSummary& times = report_.times;
    const uint64_t time = event.timestamp_ns();
    if (!times.first_ns) times.first_ns = time;
    times.last_ns = time;
    times.older_as_written += times.max_ns && time < *times.max_ns;
    times.min_ns = std::min(times.min_ns.value_or(time), time);
    times.max_ns = std::max(times.max_ns.value_or(time), time);
    if (time != 0) times.min_nonzero_ns = std::min(times.min_nonzero_ns.value_or(time), time);
    if (time == 0 || kind.metadata) return;
    times.older_than_earlier += times.range_end_ns && time < *times.range_end_ns;
    times.range_begin_ns = std::min(times.range_begin_ns.value_or(time), time);
    times.range_end_ns = std::max(times.range_end_ns.value_or(time), time);
    if (time < newest_in_sub_stream_) {
      report_.findings.add_lazily(Severity::kNote, Check::kTimeOrder, event.range().offset, [&] {
        return fmt::format("the event's time is {} ns before an earlier one of its sub-stream",
                           text_of(newest_in_sub_stream_ - time));
      });
    }
    newest_in_sub_stream_ = std::max(newest_in_sub_stream_, time);
    if (kind.realtime && !times.clock_sync && event[*kind.realtime].present())
      times.clock_sync = ClockSync{time, event[*kind.realtime].u64()};
  }

  void check_value(const Event& event, size_t field) {
    const Value& value = event[field];
    if (!value.present()) return;
    switch (value.type()) {
      case FieldType::kPooledString:
        if (decoder_.pools().strings.find(value.pool_id()) == nullptr)
          note_undefined(event, "string", value.pool_id());
        break;
      case FieldType::kPooledStackFrames:
        if (decoder_.pools().stacks.find(value.pool_id()) == nullptr)
          note_undefined(event, "stack", value.pool_id());
        break;
      case FieldType::kString:
        check_text(event.range(), value.text());
        break;
      case FieldType::kStringMap: {
        StringMapView map = value.string_map();
        for (StringMapView::Pair pair; map.next(pair);) {
          check_text(event.range(), pair.key);
          check_text(event.range(), pair.value);
        }
        break;
      }
      case FieldType::kDynamicList:
      case FieldType::kDynamicMap:
        check_nesting(event, value);
        break;
      default:
        break;
    }
  }

  void check_nesting(const Event& event, const Value& value) {
    const size_t depth = value.nesting();
    if (depth <= kMaxWrittenNesting) return;
    report_.findings.add_lazily(Severity::kNote, Check::kDeepNesting, event.range().offset, [&] {
      return fmt::format(
          "lists and maps are nested {} deep; published decoders stop at more than {}",
          text_of(uint64_t{depth}), text_of(uint64_t{kMaxWrittenNesting}));
    });
  }

  void note_undefined(const Event& event, std::string_view pool, uint32_t id) {
    report_.findings.add_lazily(
        Severity::kWarning, Check::kPoolUndefined, event.range().offset, [&] {
          return fmt::format("{} {} is used by a {} before the pool defines it", pool, text_of(id),
                             text_of(event.schema().name()));
        });
  }

  void check_text(FrameRange range, std::string_view text) {
    if (is_utf8(text)) return;
    report_.findings.add_lazily(Severity::kWarning, Check::kText, range.offset, [] {
      return std::string("a text is not UTF-8; its bytes are kept, and shown with U+FFFD");
    });
  }

  // Ids are not remembered by frame: definitions beyond the ids that are there are repetitions.
  void check_redefinition(FrameRange range, std::string_view pool, const PoolTable& table,
                          uint64_t& seen, uint32_t defined) {
    const uint64_t ids = table.ids();
    if (ids < seen + defined) {
      report_.findings.add_lazily(Severity::kNote, Check::kPoolRedefined, range.offset, [&] {
        return fmt::format("{} {} ids are defined again; the last definition counts from there on",
                           text_of(seen + defined - ids), pool);
      });
    }
    seen = ids;
  }

  void check_field_names(FrameRange range, const KnownSchema& schema) {
    if (schema.fields() > kMaxComparedFields) return;
    std::unordered_set<std::string_view> names;
    for (size_t field = 0; field < schema.fields(); ++field) {
      if (names.insert(schema.field_name(field)).second) continue;
      report_.findings.add_lazily(Severity::kNote, Check::kEqualFieldNames, range.offset, [&] {
        return fmt::format("type {} has more than one field {}", text_of(schema.name()),
                           text_of(schema.field_name(field)));
      });
      return;
    }
  }

  const Decoder& decoder_;
  Report& report_;
  std::vector<Kind> kinds_;  // by KnownSchema::index()
  uint64_t strings_seen_ = 0;
  uint64_t stacks_seen_ = 0;
  uint64_t newest_in_sub_stream_ = 0;
  size_t name_bytes_ = 0;
};

Grade grade_of(const Report& report) {
  if (!report.problem) return Grade::kOk;
  if (report.sub_streams == 0) return Grade::kRejected;
  return report.problem->rule == Rule::kTruncated ? Grade::kTruncated : Grade::kDamaged;
}

// What no one has read, and where reading could begin again.
void describe_rest(Bytes stream, Report& report) {
  const Problem& problem = *report.problem;
  const bool truncated = report.grade == Grade::kTruncated;
  report.findings.add({truncated ? Severity::kWarning : Severity::kError, Check::kProblem,
                       problem.rule, problem.frame_offset, problem.sentence});
  const uint64_t unread = report.bytes - report.whole_bytes;
  if (truncated || unread == 0) return;
  std::string sentence = text_of(unread) + " bytes behind the last whole frame are not read";
  const auto next = find_header(stream, static_cast<size_t>(report.whole_bytes) + 1);
  if (next) sentence += "; what looks like another stream begins at " + text_of(*next);
  report.findings.add({Severity::kWarning, Check::kBehindProblem, Rule::kNone, report.whole_bytes,
                       std::move(sentence)});
}

}  // namespace

std::string_view to_text(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kTruncated:
      return "truncated";
    case Grade::kDamaged:
      return "damaged";
    case Grade::kRejected:
      return "rejected";
  }
  return "unknown";
}

Report check_stream(Bytes stream) {
  Report report;
  Decoder decoder;
  Checker checker(decoder, report);
  const Decoded decoded = decoder.decode(stream, checker);
  checker.end_sub_stream();
  report.problem = decoder.finish(stream.subspan(decoded.bytes));
  report.bytes = stream.size();
  report.whole_bytes = decoded.bytes;
  report.sub_streams = decoder.sub_streams();
  report.events = decoder.events();
  report.grade = grade_of(report);
  if (report.problem) describe_rest(stream, report);
  return report;
}

}  // namespace collect::dial9
