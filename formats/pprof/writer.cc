#include "formats/pprof/writer.h"

#include "formats/core/text/utf8_text.h"

namespace collect::pprof {

Writer::Writer(ByteSink& out, bool has_cpu) : out_(out), has_cpu_(has_cpu) {
  add_text("");  // the first of the table, as the format demands
  const uint64_t calls = add_text("calls");
  const uint64_t count = add_text("count");
  const uint64_t time = add_text("time");
  const uint64_t nanoseconds = add_text("nanoseconds");
  const auto add_type = [this](uint64_t type, uint64_t unit) {
    const size_t at = proto_.begin(Profile::kSampleType);
    proto_.varint(ValueType::kType, type);
    proto_.varint(ValueType::kUnit, unit);
    proto_.end(at);
  };
  add_type(calls, count);
  add_type(time, nanoseconds);
  const uint64_t cpu = has_cpu ? add_text("cpu") : time;
  if (has_cpu) add_type(cpu, nanoseconds);
  proto_.varint(Profile::kDefaultSampleType, cpu);
}

void Writer::pass_on() {
  if (piece_.size() < kPieceBytes) return;
  if (status_.ok()) status_ = out_.write(piece_);
  piece_.clear();
}

// Its place in the string table, which is that of its appearance in the file. Mappings, locations
// and comments each begin with one, so what they add is passed on as well.
uint64_t Writer::add_text(std::string_view text) {
  clean_.clear();
  append_utf8(utf8_prefix(text, kMaxTextBytes), clean_);
  proto_.text(Profile::kStringTable, clean_);
  pass_on();
  return texts_++;
}

uint64_t Writer::shared_text(const std::string& text) {
  const auto known = shared_texts_.find(text);
  if (known != shared_texts_.end()) return known->second;
  return shared_texts_.emplace(text, add_text(text)).first->second;
}

uint64_t Writer::add_mapping(const LoadedFile& file) {
  const uint64_t path = add_text(file.path);
  const uint64_t build_id = file.build_id.empty() ? 0 : add_text(file.build_id);
  const size_t at = proto_.begin(Profile::kMapping);
  proto_.varint(Mapping::kId, ++mappings_);
  proto_.varint(Mapping::kMemoryStart, file.start);
  proto_.varint(Mapping::kMemoryLimit, file.limit);
  proto_.varint(Mapping::kFilename, path);
  if (build_id != 0) proto_.varint(Mapping::kBuildId, build_id);
  proto_.varint(Mapping::kHasFunctions, 1);
  proto_.end(at);
  return mappings_;
}

// One function for each location, under the same id.
uint64_t Writer::add_location(std::string_view name, uint64_t mapping, uint64_t address,
                              const std::string& file, uint32_t line) {
  const uint64_t text = add_text(name);
  const uint64_t file_text = file.empty() ? 0 : shared_text(file);
  const uint64_t id = ++locations_;
  const size_t function = proto_.begin(Profile::kFunction);
  proto_.varint(Function::kId, id);
  proto_.varint(Function::kName, text);
  proto_.varint(Function::kSystemName, text);
  if (file_text != 0) {
    proto_.varint(Function::kFilename, file_text);
    proto_.varint(Function::kStartLine, line);
  }
  proto_.end(function);
  const size_t location = proto_.begin(Profile::kLocation);
  proto_.varint(Location::kId, id);
  if (mapping != 0) proto_.varint(Location::kMappingId, mapping);
  if (address != 0) proto_.varint(Location::kAddress, address);
  const size_t place = proto_.begin(Location::kLine);
  proto_.varint(Line::kFunctionId, id);
  if (file_text != 0) proto_.varint(Line::kLine, line);
  proto_.end(place);
  proto_.end(location);
  return id;
}

void Writer::set_labels(const std::vector<std::pair<std::string, std::string>>& labels) {
  labels_.clear();
  for (const auto& [key, value] : labels) {
    if (value.empty()) continue;
    const auto key_text = shared_text(key);  // in this order: both are numbered as they come
    labels_.emplace_back(key_text, shared_text(value));
  }
}

void Writer::sample(uint64_t calls, uint64_t self_ns, uint64_t cpu_ns) {
  if (calls == 0 && self_ns == 0) return;
  leaf_first_.assign(stack_.rbegin(), stack_.rend());
  const uint64_t values[] = {calls, self_ns, cpu_ns};
  const size_t at = proto_.begin(Profile::kSample);
  proto_.packed(Sample::kLocationId, leaf_first_.data(), leaf_first_.size());
  proto_.packed(Sample::kValue, values, has_cpu_ ? 3 : 2);
  for (const auto& [key, value] : labels_) {
    const size_t label = proto_.begin(Sample::kLabel);
    proto_.varint(Label::kKey, key);
    proto_.varint(Label::kStr, value);
    proto_.end(label);
  }
  proto_.end(at);
  pass_on();
}

Status Writer::finish(uint64_t time_unix_ns, uint64_t duration_ns,
                      const std::vector<std::string>& comments) {
  if (time_unix_ns != 0) proto_.varint(Profile::kTimeNanos, time_unix_ns);
  proto_.varint(Profile::kDurationNanos, duration_ns);
  for (const std::string& comment : comments) {
    const uint64_t text = add_text(comment);
    proto_.varint(Profile::kComment, text);
  }
  if (status_.ok()) status_ = out_.write(piece_);
  piece_.clear();
  if (status_.ok()) status_ = out_.finish();
  return status_;
}

}  // namespace collect::pprof
