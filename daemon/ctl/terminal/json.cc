#include "daemon/ctl/terminal/json.h"

#include <ostream>

#include "formats/core/text/lower_case.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {

Json json_document() {
  return Json{{"version", kJsonVersion}};
}

void add_text(Json& object, const char* key, std::string_view text) {
  if (!text.empty()) object[key] = text;
}

std::string json_line(const Json& document) {
  return printable_json(document.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Json error_json(const Error& error) {
  std::string code;
  for (const char c : code_name(error.code)) {
    if (c == '/') continue;  // of "I/O error"
    code += c == ' ' ? '_' : lower_case(c);
  }
  return Json{{"code", code}, {"message", error.message}};
}

std::string error_line(const Error& error) {
  Json document = json_document();
  document["error"] = error_json(error);
  return json_line(document);
}

int Answer::refuse(const Error& error, int exit_code) const {
  return refuse_with(error, to_string(error), exit_code);
}

int Answer::refuse_briefly(const Error& error, int exit_code) const {
  return refuse_with(error, error.message, exit_code);
}

int Answer::refuse_with(const Error& error, const std::string& sentence, int exit_code) const {
  if (json) {
    out << error_line(error);
    out.flush();
  } else {
    err << program << ": " << printable_sentence(sentence) << "\n";
    err.flush();
  }
  return exit_code;
}

}  // namespace collect::ctl
