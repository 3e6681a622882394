// What collectord asks collect-page for, on its standard input: one JSON object. The answer on its
// standard output is what was asked for, or {"error": "…"}.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::web {

enum class PageWant : uint8_t {
  kPage,      // the page, of the whole session
  kWindow,    // the data of a page of the window, as JSON
  kBars,      // the same, of the time line alone
  kRecord,    // a detail record, and the functions that its addresses are in, as JSON
  kPerfetto,  // the window as a Perfetto trace
  kFunction,  // the calls of one function in the window, as JSON
  kLods,      // nothing: index.lod is made where it is missing
};

struct PageRequest {
  // Where a lookup of function names may search, as the settings say.
  struct Symbols {
    std::vector<std::string> directories;
    std::vector<std::string> roots;
  };

  std::string directory;    // of the session, absolute
  bool can_change = false;  // it is not sealed, or has no names yet: the page offers a refresh
  std::optional<Symbols> symbols;  // names of a session that has none are looked up
  PageWant want = PageWant::kPage;
  uint64_t first_ns = 0;  // of a window: device clock, both ends belong to it
  uint64_t last_ns = std::numeric_limits<uint64_t>::max();
  uint32_t thread = 0;  // of a record: N of thread_N
  uint64_t record = 0;
  std::string function{};  // its name

  std::string to_json() const;
  // kDamaged: it is none.
  static Result<PageRequest> parse(const std::string& json);
};

std::string page_error_json(const std::string& sentence);
// Nothing where the output is what was wanted.
std::optional<std::string> error_in_page(const std::string& output,
                                         PageWant want = PageWant::kPage);

}  // namespace collect::web
