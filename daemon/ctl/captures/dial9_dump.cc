#include "daemon/ctl/captures/dial9_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "formats/core/text/figures.h"
#include "formats/dial9/json_lines.h"
#include "formats/dial9/schema.h"
#include "storage/select/function_filter.h"

namespace collect::ctl {
namespace {

constexpr size_t kDial9ShownText = 200;       // bytes of a text on one line
constexpr size_t kShownUnit = 16;             // of a unit
constexpr size_t kDial9ShownBytes = 32;       // of a value without meaning to us
constexpr uint32_t kDial9ShownElements = 32;  // of a stack, a list or a map

class TextSink final : public ByteSink {
 public:
  explicit TextSink(TextOut& out) : out_(out) {}
  Status write(Bytes bytes) override {
    out_.put(printable_json(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    if (out_.ok()) return {};
    return Error{Code::kCancelled, "no one reads any more"};
  }

 private:
  TextOut& out_;
};

// Which events are wanted, and when it is enough.
class Selection {
 public:
  Selection(const DumpOptions& options, const calls::Window& window, select::NameFilter& names)
      : options_(options), window_(window), names_(names) {}

  bool everything() const {
    return options_.functions.empty() && window_.is_everything() && options_.limit == UINT64_MAX;
  }
  void forget_types() { wanted_.clear(); }
  bool takes(const dial9::Event& event) {
    if (printed_ == options_.limit) return false;
    if (!options_.functions.empty() && !wants_type(event.schema())) return false;
    // An event without time has that of the one before it.
    const uint64_t ns = event.timestamp_ns();
    if (ns < window_.first_ns || ns > window_.last_ns) return false;
    ++printed_;
    return true;
  }
  bool full() const { return printed_ >= options_.limit; }

 private:
  bool wants_type(const dial9::KnownSchema& schema) {
    if (schema.index() >= wanted_.size()) wanted_.resize(schema.index() + 1, kUndecided);
    uint8_t& wanted = wanted_[schema.index()];
    if (wanted == kUndecided) {
      wanted = names_.wants(schema.name()) ? kWanted : kUnwanted;
    }
    return wanted == kWanted;
  }

  static constexpr uint8_t kUndecided = 0, kWanted = 1, kUnwanted = 2;
  const DumpOptions& options_;
  const calls::Window& window_;
  select::NameFilter& names_;
  std::vector<uint8_t> wanted_;  // by KnownSchema::index()
  uint64_t printed_ = 0;
};

// The room's lines. With a selection, pools are left out: the events show what they mean.
class JsonPrinter : public dial9::JsonLines {
 public:
  JsonPrinter(ByteSink& sink, const DumpOptions& options, const calls::Window& window,
              select::NameFilter& names)
      : JsonLines(sink), selection_(options, window, names) {}

  void on_header(uint64_t offset) {
    selection_.forget_types();
    JsonLines::on_header(offset);
  }
  void on_event(const dial9::Event& event) {
    if (selection_.takes(event)) JsonLines::on_event(event);
  }
  void on_strings(dial9::FrameRange range, dial9::StringPoolView strings) {
    if (selection_.everything()) JsonLines::on_strings(range, strings);
  }
  void on_stacks(dial9::FrameRange range, dial9::StackPoolView stacks) {
    if (selection_.everything()) JsonLines::on_stacks(range, stacks);
  }
  bool wants_more() const { return JsonLines::wants_more() && !selection_.full(); }

 private:
  Selection selection_;
};

// What every event of a type shows alike, made once: its name, and before and behind each value the
// field's name and unit.
struct ShownType {
  struct ShownField {
    std::string before;  // " worker="
    std::string unit;    // "ns"; empty: none
  };
  explicit ShownType(const dial9::KnownSchema& schema)
      : name(printable(schema.name()) + " "), fields(schema.fields()) {
    for (size_t i = 0; i < fields.size(); ++i) {
      fields[i].before = fmt::format(" {}=", printable(schema.field_name(i)));
    }
    for (const dial9::Annotation& note : schema.annotations()) {
      const bool is_unit = note.key == dial9::kUnitKey || note.key == dial9::kOldUnitKey;
      if (is_unit && note.field_index < fields.size()) {
        fields[note.field_index].unit = printable(note.value, kShownUnit);
      }
    }
  }

  std::string name;
  std::vector<ShownField> fields;
};

// "12.000000345  PollStart  worker=3 spawn_loc="src/main.rs:3""
class TextPrinter : public dial9::Visitor {
 public:
  TextPrinter(TextOut& out, const DumpOptions& options, const calls::Window& window,
              select::NameFilter& names)
      : out_(out), selection_(options, window, names) {}

  void on_header(uint64_t) {
    selection_.forget_types();
    types_.clear();
  }
  void on_annotations(dial9::FrameRange, const dial9::AnnotationsView&) { types_.clear(); }
  void on_event(const dial9::Event& event) {
    if (!selection_.takes(event)) return;
    const ShownType& type = shown(event.schema());
    out_.seconds(event.timestamp_ns());
    out_.put("  ");
    out_.put(type.name);
    for (size_t field = 0; field < event.size(); ++field) {
      out_.put(type.fields[field].before);
      put_field(event, field);
      if (is_number(event[field])) out_.put(type.fields[field].unit);
    }
    out_.put('\n');
  }
  bool wants_more() const { return out_.ok() && !selection_.full(); }

 private:
  const ShownType& shown(const dial9::KnownSchema& schema) {
    if (types_.size() <= schema.index()) types_.resize(schema.index() + 1);
    auto& type = types_[schema.index()];
    if (type == nullptr) type = std::make_unique<ShownType>(schema);
    return *type;
  }
  static bool is_number(const dial9::Value& value) {
    switch (value.type()) {
      case dial9::FieldType::kI64:
      case dial9::FieldType::kF64:
      case dial9::FieldType::kVarint:
      case dial9::FieldType::kU8:
      case dial9::FieldType::kU16:
      case dial9::FieldType::kU32:
        return value.present();
      default:
        return false;
    }
  }
  void put_field(const dial9::Event& event, size_t field) {
    const dial9::Value& value = event[field];
    if (!value.present()) return out_.put('-');
    if (value.type() == dial9::FieldType::kPooledString ||
        value.type() == dial9::FieldType::kString) {
      const auto text = event.text(field);
      return text ? put_text(*text) : put_unresolved("text", value);
    }
    if (value.type() == dial9::FieldType::kPooledStackFrames ||
        value.type() == dial9::FieldType::kStackFrames) {
      const auto stack = event.stack(field);
      return stack ? put_stack(*stack) : put_unresolved("stack", value);
    }
    if (value.type() == dial9::FieldType::kStringMap) return put_map(value.string_map());
    if (is_dynamic(value)) return put_dynamic(value);
    put_plain(value);
  }

  static bool is_dynamic(const dial9::Value& value) {
    return value.type() == dial9::FieldType::kDynamicList ||
           value.type() == dial9::FieldType::kDynamicMap;
  }
  void put_text(std::string_view text) { out_.quoted(text, kDial9ShownText); }
  void put_unresolved(std::string_view what, const dial9::Value& value) {
    out_.put('<');
    out_.put(what);
    out_.put('#');
    out_.dec(value.pool_id());
    out_.put('>');
  }
  void put_more(uint64_t more) {
    if (more == 0) return;
    out_.put(" …");
    out_.dec(more);
    out_.put(" more");
  }
  void put_stack(const dial9::StackView& stack) {
    const uint32_t shown = std::min(stack.size(), kDial9ShownElements);
    out_.put('[');
    for (uint32_t i = 0; i < shown; ++i) {
      if (i != 0) out_.put(' ');
      out_.hex(stack[i]);
    }
    put_more(stack.size() - shown);
    out_.put(']');
  }
  void put_map(dial9::StringMapView pairs) {
    dial9::StringMapView::Pair pair;
    out_.put('{');
    for (uint32_t i = 0; i < kDial9ShownElements && pairs.next(pair); ++i) {
      if (i != 0) out_.put(' ');
      put_text(pair.key);
      out_.put(':');
      put_text(pair.value);
    }
    put_more(pairs.left());
    out_.put('}');
  }
  // One level: what is nested deeper is for --json.
  void put_dynamic(const dial9::Value& value) {
    const bool is_map = value.type() == dial9::FieldType::kDynamicMap;
    dial9::DynamicView elements = value.dynamic();
    dial9::Value element;
    out_.put(is_map ? '{' : '[');
    const uint32_t shown = is_map ? 2 * kDial9ShownElements : kDial9ShownElements;
    for (uint32_t i = 0; i < shown && elements.next(element); ++i) {
      if (i != 0) out_.put(is_map && i % 2 == 1 ? ':' : ' ');
      put_element(element);
    }
    put_more(is_map ? elements.left() / 2 : elements.left());
    out_.put(is_map ? '}' : ']');
  }
  void put_element(const dial9::Value& element) {
    switch (element.type()) {
      case dial9::FieldType::kString:
        return put_text(element.text());
      case dial9::FieldType::kStackFrames:
        return put_stack(element.stack());
      case dial9::FieldType::kPooledString:
        return put_unresolved("text", element);
      case dial9::FieldType::kPooledStackFrames:
        return put_unresolved("stack", element);
      case dial9::FieldType::kDynamicList:
        return out_.put("[…]");
      case dial9::FieldType::kDynamicMap:
      case dial9::FieldType::kStringMap:
        return out_.put("{…}");
      default:
        return put_plain(element);
    }
  }
  void put_signed(int64_t number) {
    if (number < 0) out_.put('-');
    out_.dec(number < 0 ? uint64_t{0} - static_cast<uint64_t>(number)
                        : static_cast<uint64_t>(number));
  }
  void put_plain(const dial9::Value& value) {
    switch (value.type()) {
      case dial9::FieldType::kBool:
        return out_.put(value.boolean() ? "true" : "false");
      case dial9::FieldType::kI64:
        return put_signed(value.i64());
      case dial9::FieldType::kF64:
        return out_.put(real_text(value.f64()));
      case dial9::FieldType::kBytes: {
        const Bytes bytes = value.bytes();
        out_.hex_bytes(bytes.first(std::min(kDial9ShownBytes, bytes.size())));
        return bytes.size() > kDial9ShownBytes ? put_more(bytes.size() - kDial9ShownBytes) : void();
      }
      default:
        return out_.dec(value.u64());
    }
  }

  TextOut& out_;
  Selection selection_;
  std::vector<std::unique_ptr<ShownType>> types_;  // by KnownSchema::index()
};

// The problem that ended reading, unless the printer had enough before.
template <class Printer>
std::optional<dial9::Problem> print(Bytes file, Printer& printer, const BytesDone& done) {
  if (!printer.wants_more()) return std::nullopt;
  dial9::Decoder decoder;
  DoneSteps steps(done);
  uint64_t part = DoneSteps::kStep;
  for (Bytes rest = file;;) {
    const bool is_last = rest.size() <= part;
    const dial9::Decoded decoded = decoder.decode(is_last ? rest : rest.first(part), printer);
    rest = rest.subspan(decoded.bytes);
    if (decoded.state == dial9::DecodeState::kStopped) return std::nullopt;
    if (is_last || decoded.state == dial9::DecodeState::kFailed) return decoder.finish(rest);
    steps.at(decoder.offset());
    part = std::max(DoneSteps::kStep, decoded.need);  // of a frame that is larger than a part
  }
}

}  // namespace

std::string dial9_seconds(uint64_t ns) {
  std::string digits = std::to_string(ns % 1'000'000'000);
  digits.insert(0, 9 - digits.size(), '0');
  return fmt::format("{}.{}", ns / 1'000'000'000, digits);
}

Status dump_dial9(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                  const BytesDone& done) {
  if (!options.threads.empty() || options.merged || options.detail) {
    return Error{Code::kInvalidArgument,
                 "a dial9 stream has events of named types, not threads and calls: --function "
                 "takes their names; collectctl convert --to atf makes a session of it"};
  }
  auto names = select::NameFilter::make(options.functions);
  if (!names.ok()) return names.error();
  bool full = false;
  std::optional<dial9::Problem> problem;
  if (options.json) {
    TextSink sink(out);
    JsonPrinter printer(sink, options, window, *names);
    problem = print(file, printer, done);
    const Status written = printer.finish(problem);
    if (!written.ok()) return written;
    full = !printer.wants_more();
  } else {
    TextPrinter printer(out, options, window, *names);
    problem = print(file, printer, done);
    full = !printer.wants_more();
  }
  if (!problem) return full ? Status() : names->check_all_found("event type", {});
  return dial9::to_error(*problem);
}

}  // namespace collect::ctl
