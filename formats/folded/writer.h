// Writes folded stacks (FORMAT.md): one line for each stack that has a weight, as `flamegraph.pl`
// and many others read them. The caller walks a call tree, each node once. Memory: the stack.
//
// Not thread-safe. Errors of the sink are kept, and returned by finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/text_sink.h"

namespace collect::folded {

inline constexpr size_t kMaxNameBytes = 4096;  // of a frame; the rest is cut

class Writer {
 public:
  explicit Writer(ByteSink& out) : text_(out) {}

  // A frame within those that are open.
  void push(std::string_view name);
  void pop();
  // What belongs to the frames that are open, and to nothing within them. 0 is no line.
  void weigh(uint64_t weight);
  Status finish() { return text_.finish(); }
  const Status& status() const { return text_.status(); }

 private:
  TextSink text_;
  std::string stack_;            // as it is written
  std::vector<size_t> lengths_;  // of stack_ before each frame
};

}  // namespace collect::folded
