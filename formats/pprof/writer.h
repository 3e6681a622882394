// Writes pprof profiles (FORMAT.md): gzip of profile.proto, as it comes. The caller walks a call
// tree, each node once. Memory: one piece, the stack, and the strings of labels and files.
//
// Not thread-safe. Errors of the sink are kept, and returned by finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/encoding/deflate.h"
#include "formats/core/encoding/protobuf.h"
#include "formats/pprof/layout.h"

namespace collect::pprof {

// A file that was loaded, at [start, limit).
struct LoadedFile {
  uint64_t start = 0;
  uint64_t limit = 0;
  std::string path;
  std::string build_id;  // hexadecimal
};

class Writer {
 public:
  // `has_cpu`: samples have the time on a processor, too, which viewers show first then.
  explicit Writer(ByteSink& out, bool has_cpu = false);

  // Both return ids, from 1 on. `mapping` 0: none. Nothing is looked up: each call makes one.
  uint64_t add_mapping(const LoadedFile& file);
  // `file`, `line`: where the function begins; empty: not known.
  uint64_t add_location(std::string_view name, uint64_t mapping = 0, uint64_t address = 0,
                        const std::string& file = {}, uint32_t line = 0);

  // Whose the samples are that come then. An empty value is no label.
  void set_labels(const std::vector<std::pair<std::string, std::string>>& labels);
  void push(uint64_t location) { stack_.push_back(location); }
  void pop() { stack_.pop_back(); }
  const Status& status() const { return status_; }
  size_t depth() const { return stack_.size(); }
  // What belongs to the newest frame, within those around it. Zeros are no sample.
  // `cpu_ns`: of self_ns, where the file has it.
  void sample(uint64_t calls, uint64_t self_ns, uint64_t cpu_ns = 0);

  // `time_unix_ns`: when the recording began; 0: not known.
  Status finish(uint64_t time_unix_ns, uint64_t duration_ns,
                const std::vector<std::string>& comments);

 private:
  uint64_t add_text(std::string_view text);
  uint64_t shared_text(const std::string& text);
  void pass_on();

  GzipSink out_;
  const bool has_cpu_;
  Status status_;
  std::vector<uint8_t> piece_;
  ProtoWriter proto_{piece_};
  std::vector<uint64_t> stack_;
  std::vector<uint64_t> leaf_first_;
  std::vector<std::pair<uint64_t, uint64_t>> labels_;
  std::unordered_map<std::string, uint64_t> shared_texts_;
  uint64_t texts_ = 0;
  uint64_t mappings_ = 0;
  uint64_t locations_ = 0;
  std::string clean_;
};

}  // namespace collect::pprof
