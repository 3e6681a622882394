#include "formats/speedscope/writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/printable.h"
#include "formats/core/text/utf8_text.h"

namespace collect::speedscope {

Writer::Writer(ByteSink& out, uint64_t origin_ns, std::string_view exporter)
    : text_(out), origin_ns_(origin_ns), exporter_(exporter) {
  text_.put("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"profiles\":[");
}

void Writer::put_string(std::string_view text) {
  std::string json;
  append_minimal_json_string(json, utf8_prefix(text, kMaxNameBytes));
  text_.put(json);
}

uint32_t Writer::add_frame(const Frame& frame) {
  std::string json = "{\"name\":";
  append_minimal_json_string(json, utf8_prefix(frame.name, kMaxNameBytes));
  if (!frame.file.empty()) {
    json += ",\"file\":";
    append_minimal_json_string(json, utf8_prefix(frame.file, kMaxNameBytes));
    json += fmt::format(",\"line\":{}", frame.line);
  }
  json += '}';
  frames_.push_back(std::move(json));
  return static_cast<uint32_t>(frames_.size() - 1);
}

uint32_t Writer::frame_named(const std::string& name) {
  const auto known = frames_by_name_.find(name);
  if (known != frames_by_name_.end()) return known->second;
  const uint32_t frame = add_frame(name);
  frames_by_name_.emplace(name, frame);
  return frame;
}

void Writer::begin_profile(std::string_view name) {
  text_.put(has_profile_ ? ",\n{\"type\":\"evented\",\"name\":"
                         : "\n{\"type\":\"evented\",\"name\":");
  has_profile_ = true;
  has_event_ = false;
  first_ns_ = 0;
  last_ns_ = 0;
  put_string(name);
  text_.put(",\"unit\":\"nanoseconds\",\"events\":[");
}

void Writer::put_event(char type, uint32_t frame, uint64_t ns) {
  const uint64_t at_ns = ns - std::min(ns, origin_ns_);
  if (!has_event_) {
    first_ns_ = at_ns;
    last_ns_ = at_ns;
  }
  if (at_ns < last_ns_) ++moved_;
  last_ns_ = std::max(last_ns_, at_ns);
  text_.put(has_event_ ? ",\n{\"type\":\"" : "\n{\"type\":\"");
  has_event_ = true;
  text_.put(type);
  text_.put("\",\"frame\":");
  text_.dec(uint64_t{frame});
  text_.put(",\"at\":");
  text_.dec(last_ns_);
  text_.put('}');
}

void Writer::open(uint64_t ns, uint32_t frame) {
  open_.push_back(frame);
  put_event('O', frame, ns);
}

void Writer::close(uint64_t ns) {
  if (open_.empty()) return;
  put_event('C', open_.back(), ns);
  open_.pop_back();
}

void Writer::end_profile(uint64_t ns) {
  while (!open_.empty()) close(ns);
  text_.put("],\"startValue\":");
  text_.dec(first_ns_);
  text_.put(",\"endValue\":");
  text_.dec(last_ns_);
  text_.put('}');
}

Status Writer::finish(std::string_view name) {
  text_.put("],\n\"shared\":{\"frames\":[");
  const char* comma = "\n";
  for (const std::string& frame : frames_) {
    text_.put(comma);
    comma = ",\n";
    text_.put(frame);
  }
  text_.put("]},\n\"name\":");
  put_string(name);
  text_.put(",\"exporter\":");
  put_string(exporter_);
  text_.put("}\n");
  return text_.finish();
}

}  // namespace collect::speedscope
