// What every `--json` prints: one dialect, which deploy/guide/json.md describes and deploy/schema
// holds as JSON Schemas. Keys are snake_case, numbers are numbers, what is not known is absent, and
// every object that is alone on a line begins with the dialect's version.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::ctl {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were added

inline constexpr int kJsonVersion = 1;
// How a line of `dump` begins, of which there are too many to make each of them from a Json.
inline constexpr std::string_view kJsonLineStart = "{\"version\":1,";

// {"version":1}, to which a command adds what it has to say.
Json json_document();

// Adds the field, unless there is no text to show.
void add_text(Json& object, const char* key, std::string_view text);

// On one line, with its newline. What is not UTF-8 becomes U+FFFD, what a terminal would obey is
// written as \uXXXX.
std::string json_line(const Json& document);

// {"code":"not_found","message":"…"}: the code is code_name() in one word.
Json error_json(const Error& error);
// {"version":1,"error":{…}}
std::string error_line(const Error& error);

// Where a command of files answers, and says why it has no answer: a line on the error stream, or
// with --json the error as an object in place of the answer.
struct Answer {
  bool json;
  std::ostream& out;
  std::ostream& err;
  const char* program = "collectctl";

  // Returns `exit_code`. The sentence for people begins with the name of the code.
  int refuse(const Error& error, int exit_code) const;
  // refuse() without the name of the code.
  int refuse_briefly(const Error& error, int exit_code) const;

 private:
  int refuse_with(const Error& error, const std::string& sentence, int exit_code) const;
};

}  // namespace collect::ctl
