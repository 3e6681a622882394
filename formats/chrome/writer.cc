#include "formats/chrome/writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/utf8_text.h"

namespace collect::chrome {

std::string Writer::json_of(std::string_view text) {
  std::string json;
  append_minimal_json_string(json, utf8_prefix(text, kMaxTextBytes));
  return json;
}

Writer::Writer(ByteSink& out, uint64_t origin_ns) : text_(out), origin_ns_(origin_ns) {
  text_.put("{\"traceEvents\":[\n");
}

void Writer::begin_event(std::string_view phase, int64_t pid) {
  text_.put(is_first_ ? "{\"ph\":\"" : ",\n{\"ph\":\"");
  is_first_ = false;
  text_.put(phase);
  text_.put("\",\"pid\":");
  text_.dec(pid);
}

// In microseconds.
void Writer::put_time(uint64_t ns) {
  text_.put(",\"ts\":");
  text_.thousandths(ns - std::min(ns, origin_ns_));
}

void Writer::put_notes(std::string_view key, const EventNotes& notes) {
  text_.put(",\"");
  text_.put(key);
  text_.put("\":{");
  const char* comma = "";
  for (const EventNote& note : notes) {
    text_.put(comma);
    comma = ",";
    text_.put(json_of(note.name));
    text_.put(':');
    switch (note.kind) {
      case EventNote::Kind::kFlag:
        text_.put(note.value != 0 ? "true" : "false");
        break;
      case EventNote::Kind::kNumber:
        text_.dec(note.value);
        break;
      case EventNote::Kind::kAddress: {
        // As text: a JSON number keeps 53 bits.
        char digits[16];
        const auto end = std::to_chars(digits, digits + sizeof digits, note.value, 16).ptr;
        text_.put("\"0x");
        text_.put(std::string_view(digits, static_cast<size_t>(end - digits)));
        text_.put('"');
        break;
      }
      case EventNote::Kind::kText:
        text_.put(json_of(note.text));
        break;
    }
  }
  text_.put('}');
}

void Writer::add_process(int64_t pid, std::string_view name) {
  begin_event("M", pid);
  text_.put(",\"name\":\"process_name\",\"args\":{\"name\":");
  text_.put(json_of(name));
  text_.put("}}");
}

void Writer::begin_thread(int64_t pid, int64_t tid, std::string_view name) {
  last_ns_ = 0;
  const std::string whose = fmt::format(",\"pid\":{},\"tid\":{},\"ts\":", pid, tid);
  begin_prefix_ = ",\n{\"ph\":\"B\"" + whose;
  end_prefix_ = ",\n{\"ph\":\"E\"" + whose;
  begin_event("M", pid);
  text_.put(",\"tid\":");
  text_.dec(tid);
  text_.put(",\"name\":\"thread_name\",\"args\":{\"name\":");
  text_.put(json_of(name));
  text_.put("}}");
}

void Writer::put_call(const std::string& prefix, uint64_t ns, const std::string& name,
                      const EventNotes* notes) {
  if (ns < last_ns_) ++moved_;
  last_ns_ = std::max(ns, last_ns_);
  text_.put(prefix);
  text_.thousandths(last_ns_ - std::min(last_ns_, origin_ns_));
  text_.put(",\"name\":");
  text_.put(name);
  if (notes != nullptr && !notes->empty()) put_notes("args", *notes);
  text_.put('}');
}

void Writer::interval(int64_t pid, int64_t tid, std::string_view category, uint64_t id,
                      uint64_t first_ns, uint64_t last_ns, std::string_view name,
                      const EventNotes& notes) {
  for (const bool is_begin : {true, false}) {
    begin_event(is_begin ? "b" : "e", pid);
    text_.put(",\"tid\":");
    text_.dec(tid);
    put_time(is_begin ? first_ns : std::max(first_ns, last_ns));
    text_.put(",\"cat\":");
    text_.put(json_of(category));
    text_.put(",\"id\":");
    text_.dec(id);
    text_.put(",\"name\":");
    text_.put(json_of(name));
    if (is_begin && !notes.empty()) put_notes("args", notes);
    text_.put('}');
  }
}

void Writer::instant(int64_t pid, uint64_t ns, std::string_view name, const EventNotes& notes) {
  begin_event("i", pid);
  text_.put(",\"tid\":0");
  put_time(ns);
  text_.put(",\"s\":\"p\",\"name\":");
  text_.put(json_of(name));
  if (!notes.empty()) put_notes("args", notes);
  text_.put('}');
}

void Writer::count(int64_t pid, uint64_t ns, std::string_view name, uint64_t value) {
  begin_event("C", pid);
  put_time(ns);
  text_.put(",\"name\":");
  text_.put(json_of(name));
  text_.put(",\"args\":{\"value\":");
  text_.dec(value);
  text_.put("}}");
}

Status Writer::finish(const EventNotes& facts) {
  text_.put("\n],\"displayTimeUnit\":\"ns\"");
  put_notes("otherData", facts);
  text_.put("}\n");
  return text_.finish();
}

}  // namespace collect::chrome
