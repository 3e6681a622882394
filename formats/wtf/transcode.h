// Copies the events of any file that Reader reads, legacy ones among them, into a Writer.
#pragma once

#include "formats/core/result.h"
#include "formats/wtf/reader.h"
#include "formats/wtf/writer.h"

namespace collect::wtf {

// Begins `writer`, whose options have epoch_ns 0 and pair_scopes off, copies every event with its
// zone, definitions and time, and finishes it. Where the writer's rules are stricter than what the
// file has, the copy is changed and `findings` says so: strings are made UTF-8, zones of equal text
// become one, and of two definitions of one name the second gets a number. Resources are copied.
Status transcode(Reader& reader, Writer& writer, Findings& findings);

}  // namespace collect::wtf
