// The JSON form of WTF-trace, both modes of the specification, with the event buffer that the
// published implementation never had; FORMAT.md "JSON form" describes it. Binary to JSON and back
// keeps every byte of a well-formed file: binary_to_json then json_to_binary gives the same bytes.
//
// Streams: one chunk of events is in memory at a time. No recursion; nesting is bounded.
#pragma once

#include <cstdint>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/wtf/finding.h"

namespace collect::wtf {

enum class JsonMode : uint8_t {
  kComplete,  // one document
  kPartial,   // a header object, then one object per chunk, each on a line of its own
};

enum class JsonEvents : uint8_t {
  kEvents,  // as JSON, for people and other programs; the published viewer ignores them
  kBase64,  // the binary event buffer as text, which the published viewer loads
};

struct JsonOptions {
  JsonMode mode = JsonMode::kComplete;
  JsonEvents events = JsonEvents::kEvents;
};

struct JsonTotals {
  uint64_t chunks = 0;
  uint64_t events = 0;       // definitions and zone events too; base64 buffers count as well
  uint64_t json_events = 0;  // those of them that are there as JSON
  JsonMode mode = JsonMode::kComplete;
};

// `file` is of format version 10 (legacy files: transcode.h first). What a damaged file does not
// give is a finding; the rest is converted. kUnsupported, kTruncated: no such file; others are the
// sink's.
Result<JsonTotals> binary_to_json(Bytes file, const JsonOptions& options, ByteSink& sink,
                                  Findings& findings);

// Either mode, found out from the text. A document that breaks off gives the chunks up to there.
// kDamaged: not even a header object; kUnsupported: another format version; others are the sink's.
Result<JsonTotals> json_to_binary(Bytes json, ByteSink& sink, Findings& findings);

}  // namespace collect::wtf
