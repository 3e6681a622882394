// Text of a peer or a file, made fit for people: a log line, a table, a terminal, an error message.
// The one place that decides which characters may be shown; TEXT.md has the rules and the escapes.
// What is stored (manifest, streams, JSON values) stays as it came; only what is shown is escaped.
// Pure functions, for every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/text/code_points.h"

namespace collect {

// Bounds of what one call returns, in bytes. What is longer ends in "…".
constexpr size_t kMaxPrintableBytes = 4096;  // a name
constexpr size_t kMaxSentenceBytes = 16384;  // a sentence with several names in it

// A name. Injective as long as it is not cut: two names that differ look different, because a
// backslash is doubled. So a text that went through here must not do so again: it is a sentence
// then.
std::string printable(std::string_view text, size_t max_bytes = kMaxPrintableBytes);

// Whether printable() would return the same, if it is short enough: ASCII, seen at a glance.
bool is_plain_name(std::string_view text);

// As printable, in quotation marks, where the words around it must not run into it. Quotation marks
// within it become \".
std::string in_quotes(std::string_view text, size_t max_bytes = kMaxPrintableBytes);

// A line that we put together, perhaps of names that are printable already: as printable, but
// backslashes stay. Idempotent.
std::string printable_sentence(std::string_view text, size_t max_bytes = kMaxSentenceBytes);

// Text of several lines, or a part of a text: as printable_sentence, but \n and \t stay, and
// without a bound. What may be the start of a character that is cut off by the text's end stays
// too; its length is returned (0 to 3 bytes), so that a stream can wait for the rest.
size_t append_printable_text(std::string& out, std::string_view text);

// How much of `text` at its start append_printable_text would leave as it is: ASCII only.
size_t plain_text_prefix(std::string_view text);

// A JSON string with its quotation marks. The value is exact, if `text` is UTF-8 (each part that is
// not becomes U+FFFD); what is not printable is written as \uXXXX, so that JSON on a terminal is as
// harmless as text.
void append_json_string(std::string& out, std::string_view text);

// A JSON string with only those escapes that JSON demands, where a published form of a file or dump
// has its texts so. Not for a terminal.
void append_minimal_json_string(std::string& out, std::string_view text);

// JSON that someone else put together: what is not printable becomes \uXXXX. ASCII stays as it is.
std::string printable_json(std::string_view json);

}  // namespace collect
