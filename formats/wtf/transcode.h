// Any file that Reader reads, legacy ones among them, as a file of the present version.
#pragma once

#include <cstdint>
#include <functional>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "formats/wtf/binary/reader.h"
#include "formats/wtf/binary/writer.h"

namespace collect::wtf {

using BytesDone = std::function<void(uint64_t)>;  // bytes of the input looked at; may be empty

inline constexpr WriterOptions kFaithfulCopy = {.pair_scopes = false, .foreign_builtins = true};

// Begins `writer`, whose options are kFaithfulCopy, copies everything (every event with its zone,
// definition and time; header, resources; types and zones without events), and finishes it. Builtin
// events stay as the file defines them. Where the format is stricter than what the file has, the
// copy is changed and `findings` reports that: strings are made UTF-8, zones of equal text become
// one, and of two definitions of one name the second gets a number.
Status transcode(Reader& reader, Writer& writer, Findings& findings, const BytesDone& done = {});

// A binary file, of either version: byte for byte when check_file finds nothing wrong with it,
// otherwise transcoded as far as it can be read. The events written; what is missing or changed is
// in `findings`. kUnsupported, kTruncated: nothing can be read; others are the sink's.
Result<uint64_t> rewrite(Bytes file, ByteSink& out, Findings& findings, const BytesDone& done = {});

}  // namespace collect::wtf
