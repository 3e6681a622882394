// A dial9 stream as text: one JSON object per frame and line, for people, for comparing streams,
// and for `collectctl dump --json`. FORMAT.md "JSON lines" has the form; keys are sorted, integers
// and addresses are decimal strings, pooled values are resolved with what is known at that point.
#pragma once

#include <string>

#include "formats/core/byte_sink.h"
#include "formats/dial9/read/decoder.h"

namespace collect::dial9 {

// A visitor that writes lines to a sink, in pieces of about 64 KiB. After an error of the sink it
// wants no more, and status() says why.
class JsonLines : public Visitor {
 public:
  explicit JsonLines(ByteSink& sink) : sink_(sink) {}

  void on_header(uint64_t offset);
  void on_schema(FrameRange range, const KnownSchema& schema);
  void on_event(const Event& event);
  void on_strings(FrameRange range, StringPoolView strings);
  void on_stacks(FrameRange range, StackPoolView stacks);
  void on_annotations(FrameRange range, const AnnotationsView& notes);
  bool wants_more() const { return status_.ok(); }

  // The last line: the end, or the problem that was in the way. Then everything is in the sink.
  Status finish(const std::optional<Problem>& problem);
  const Status& status() const { return status_; }

 private:
  void end_line();

  ByteSink& sink_;
  std::string out_;
  Status status_;
  bool begun_ = false;
};

// The whole of a stream: decodes and writes. kTruncated, kDamaged ... are lines, not errors; errors
// are the sink's.
Status dump_json_lines(Bytes stream, ByteSink& sink);

}  // namespace collect::dial9
