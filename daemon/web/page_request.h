// What collectord asks collect-page for, on its standard input: one JSON object. The answer on its
// standard output is the page, or {"error": "…"}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::web {

struct PageRequest {
  // Where a lookup of function names may search, as the settings say.
  struct Symbols {
    std::vector<std::string> directories;
    std::vector<std::string> roots;
  };

  std::string directory;    // of the session, absolute
  bool can_change = false;  // it is not sealed, or has no names yet: the page offers a refresh
  std::optional<Symbols> symbols;  // names of a session that has none are looked up

  std::string to_json() const;
  // kDamaged: it is none.
  static Result<PageRequest> parse(const std::string& json);
};

std::string page_error_json(const std::string& sentence);
// Nothing where the output is a page.
std::optional<std::string> error_in_page(const std::string& output);

}  // namespace collect::web
