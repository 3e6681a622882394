#include "daemon/ctl/captures/wtf_dump.h"
#include "daemon/ctl/terminal/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/reader.h"
#include "formats/wtf/text.h"
#include "storage/convert/wtf/wtf_binary.h"
#include "storage/select/function_filter.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr size_t kWtfTimeWidth = 12;
constexpr size_t kWtfDurationWidth = 12;
constexpr size_t kWtfMaxIndent = 64;
constexpr size_t kWtfShownText = 200;     // of a text, in the text form
constexpr size_t kWtfShownElements = 16;  // of an array, in the text form
// Scopes that are open at one time in all zones together, and the texts that name them: of more,
// leaves have no name and no duration.
constexpr size_t kMaxOpenScopes = size_t{1} << 22;
constexpr size_t kWtfMaxNameBytes = size_t{64} << 20;

struct Scope {
  const std::string* name = nullptr;  // of its type, or kept in names_
  uint32_t start_us = 0;
};

class EventPrinter {
 public:
  EventPrinter(const DumpOptions& options, const calls::Window& window, select::NameFilter& names,
               const wtf::Reader& reader, TextOut& out)
      : options_(options), window_(window), selected_(names), reader_(reader), out_(out) {}

  // True when it was printed.
  bool take(const wtf::Event& event);

 private:
  struct Zone {
    std::vector<Scope> open;
    uint64_t too_deep = 0;  // scopes that `open` does not hold
  };
  struct Step {
    const std::string* name = nullptr;
    size_t depth = 0;  // to print at
    std::optional<uint32_t> duration_us;
  };

  Step step(const wtf::Event& event);
  const std::string* scope_name(const wtf::Event& event);
  bool wants(const std::string& name, uint32_t time_us);
  void print_text(const wtf::Event& event, const Step& step);
  void print_json(const wtf::Event& event, const Step& step);
  void text_value(const wtf::Value& value);
  void json_value(const wtf::Value& value);
  void number(const wtf::Value& value);
  void real(float value);
  void zone_line(uint32_t zone);

  const DumpOptions& options_;
  const calls::Window& window_;
  select::NameFilter& selected_;
  const wtf::Reader& reader_;
  TextOut& out_;
  std::vector<Zone> zones_;
  std::unordered_set<std::string> names_;
  size_t name_bytes_ = 0;
  size_t open_scopes_ = 0;
  std::optional<uint32_t> zone_;  // that the last line of text was of
  const std::string no_name_;
};

// A scope type that takes its name from its argument.
const std::string* EventPrinter::scope_name(const wtf::Event& event) {
  if (event.type->role != wtf::Role::kScopeEnter) return &event.type->name;
  const auto value = event.argument("name");
  std::string name = value && value->is_text() && value->present() ? value->utf8() : "";
  if (name.size() > kWtfMaxNameBytes - name_bytes_) return &no_name_;
  const auto [kept, fresh] = names_.insert(std::move(name));
  if (fresh) name_bytes_ += kept->size();
  return &*kept;
}

// Follows the scopes of the event's zone, printed or not.
EventPrinter::Step EventPrinter::step(const wtf::Event& event) {
  if (zones_.size() <= event.zone) zones_.resize(event.zone + 1);
  Zone& zone = zones_[event.zone];
  Step step{&event.type->name, zone.open.size() + zone.too_deep, {}};
  if (event.type->role == wtf::Role::kScopeLeave) {
    step.name = &no_name_;
    if (zone.too_deep != 0) {
      --zone.too_deep;
    } else if (!zone.open.empty()) {
      const Scope scope = zone.open.back();
      zone.open.pop_back();
      --open_scopes_;
      step.name = scope.name;
      if (event.time_us >= scope.start_us) step.duration_us = event.time_us - scope.start_us;
    }
    step.depth = zone.open.size() + zone.too_deep;
  } else if (event.type->is_scope()) {
    step.name = scope_name(event);
    if (open_scopes_ < kMaxOpenScopes && zone.too_deep == 0) {
      zone.open.push_back({step.name, event.time_us});
      ++open_scopes_;
    } else {
      ++zone.too_deep;
    }
  }
  return step;
}

bool EventPrinter::wants(const std::string& name, uint32_t time_us) {
  if (!selected_.wants(name)) return false;
  const uint64_t ns = uint64_t{time_us} * kNsPerUs;
  return ns >= window_.first_ns && ns <= window_.last_ns;
}

bool EventPrinter::take(const wtf::Event& event) {
  const Step made = step(event);
  if (!wants(*made.name, event.time_us)) return false;
  if (options_.json) {
    print_json(event, made);
  } else {
    print_text(event, made);
  }
  return true;
}

// ---- text

void EventPrinter::zone_line(uint32_t index) {
  zone_ = index;
  const wtf::Zone& zone = reader_.zones()[index];
  out_.put("# zone ");
  out_.dec(index);
  for (const auto& text : {zone.name, zone.type}) {
    if (!text || text->empty()) continue;
    out_.put(", ");
    out_.quoted(*text);
  }
  out_.put('\n');
}

void EventPrinter::print_text(const wtf::Event& event, const Step& step) {
  if (zone_ != event.zone) zone_line(event.zone);
  out_.dec(event.time_us, kWtfTimeWidth);
  if (step.duration_us) {
    out_.dec(*step.duration_us, kWtfDurationWidth);
  } else {
    out_.repeat(' ', kWtfDurationWidth);
  }
  out_.put(" | ");
  out_.repeat(' ', std::min(2 * step.depth, kWtfMaxIndent));
  if (event.type->role == wtf::Role::kScopeLeave) {
    out_.put(step.name->empty() ? "}" : "} ");
    out_.printable(*step.name);
    out_.put('\n');
    return;
  }
  out_.printable(*step.name);
  out_.put('(');
  const char* comma = "";
  wtf::Value value;
  for (wtf::Arguments walk = event.arguments(); walk.next(value);) {
    if (event.type->role == wtf::Role::kScopeEnter && value.argument->name == "name") continue;
    out_.put(comma);
    comma = ", ";
    out_.printable(value.argument->name);
    out_.put('=');
    text_value(value);
  }
  out_.put(event.type->is_scope() ? ") {\n" : ")\n");
}

void EventPrinter::text_value(const wtf::Value& value) {
  const wtf::ArgType type = value.argument->type;
  if (!value.present()) {
    out_.put("null");
  } else if (wtf::is_string(type) || type == wtf::ArgType::kChar || type == wtf::ArgType::kWchar) {
    const std::string text = value.utf8();
    if (type == wtf::ArgType::kAny) {
      out_.printable(text, kWtfShownText);  // JSON
    } else {
      out_.quoted(text, kWtfShownText);
    }
  } else if (value.argument->array) {
    out_.put('[');
    for (size_t i = 0; i < std::min<size_t>(value.count, kWtfShownElements); ++i) {
      if (i != 0) out_.put(", ");
      if (type == wtf::ArgType::kFloat32) {
        real(value.real_element(i));
      } else {
        out_.put(std::to_string(value.element(i)));
      }
    }
    if (value.count > kWtfShownElements) {
      out_.put(", … of ");
      out_.dec(value.count);
    }
    out_.put(']');
  } else {
    number(value);
  }
}

void EventPrinter::number(const wtf::Value& value) {
  if (value.argument->type == wtf::ArgType::kFloat32) {
    real(value.real());
  } else if (value.argument->type == wtf::ArgType::kBool) {
    out_.put(value.integer() != 0 ? "true" : "false");
  } else {
    out_.put(std::to_string(value.integer()));
  }
}

// What JSON has no number for is null.
void EventPrinter::real(float value) {
  if (!std::isfinite(value)) return out_.put("null");
  std::string text;
  wtf::append_number(text, value);
  out_.put(text);
}

// ---- JSON

void EventPrinter::print_json(const wtf::Event& event, const Step& step) {
  const wtf::Zone& zone = reader_.zones()[event.zone];
  const bool leave = event.type->role == wtf::Role::kScopeLeave;
  out_.put(kJsonLineStart);
  if (zone.name) {
    out_.put("\"zone\":");
    out_.json_string(*zone.name);
    out_.put(',');
  }
  out_.put("\"zone_index\":");
  out_.dec(event.zone);
  out_.put(",\"time_us\":");
  out_.dec(event.time_us);
  out_.put(",\"event\":");
  out_.json_string(*step.name);
  out_.put(",\"kind\":");
  out_.put(leave ? "\"leave\"" : event.type->is_scope() ? "\"scope\"" : "\"instance\"");
  out_.put(",\"depth\":");
  out_.dec(step.depth);
  out_.put(",\"args\":{");
  const char* comma = "";
  wtf::Value value;
  for (wtf::Arguments walk = event.arguments(); walk.next(value);) {
    if (!value.present()) continue;
    out_.put(comma);
    comma = ",";
    out_.json_string(value.argument->name);
    out_.put(':');
    json_value(value);
  }
  out_.put("}}\n");
}

void EventPrinter::json_value(const wtf::Value& value) {
  const wtf::ArgType type = value.argument->type;
  if (type == wtf::ArgType::kAny && is_json(value.text) &&
      value.text.find_first_of("\r\n") == std::string_view::npos) {
    out_.put(printable_json(value.text));  // on one line, as lines are what programs read
  } else if (wtf::is_string(type) || type == wtf::ArgType::kChar || type == wtf::ArgType::kWchar) {
    out_.json_string(value.utf8());
  } else if (value.argument->array) {
    out_.put('[');
    for (size_t i = 0; i < value.count; ++i) {
      if (i != 0) out_.put(',');
      if (type == wtf::ArgType::kFloat32) {
        real(value.real_element(i));
      } else {
        out_.put(std::to_string(value.element(i)));
      }
    }
    out_.put(']');
  } else {
    number(value);
  }
}

}  // namespace

Status dump_wtf(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                const BytesDone& done) {
  if (!options.threads.empty() || options.merged || options.detail) {
    return Error{Code::kInvalidArgument,
                 "a WTF-trace has zones, not threads with detail records, and is shown in its own "
                 "order; collectctl convert --to atf makes a session of it"};
  }
  auto names = select::NameFilter::make(options.functions);
  if (!names.ok()) return names.error();
  wtf::Findings findings;
  const auto binary = convert::WtfBinary::of(file, findings);
  if (!binary.ok()) return binary.error();
  auto reader = wtf::Reader::open(binary->bytes(), findings);
  if (!reader.ok()) return reader.error();
  EventPrinter printer(options, window, *names, **reader, out);
  uint64_t printed = 0;
  DoneSteps steps(done);
  const double file_bytes = static_cast<double>(file.size());  // of JSON; its events are binary
  for (wtf::Event event; printed < options.limit && out.ok() && (*reader)->next(event);) {
    const double part =
        static_cast<double>(event.offset) / static_cast<double>(binary->bytes().size());
    steps.at(static_cast<uint64_t>(part * file_bytes));
    if (printer.take(event)) ++printed;
  }
  if (findings.errors() == 0) {
    const bool whole = printed < options.limit && out.ok();
    return whole ? names->check_all_found("scope or mark", {}) : Status();
  }
  return Error{Code::kDamaged, fmt::format("{} errors on the way; collectctl verify lists them",
                                           findings.errors())};
}

}  // namespace collect::ctl
