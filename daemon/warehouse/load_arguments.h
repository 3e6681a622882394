// What collectctl asks collect-load for, as its arguments: a program of its own, because what talks
// HTTP makes a program start later. User and password are in the environment alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

namespace collect::warehouse {

struct LoadArguments {
  std::string command{};  // "load" or "query"
  std::string server{};
  std::string database{};
  std::string events{};              // load: "load", "reference", "none"
  std::string format{};              // query: of the answer
  std::string again{};               // load: also what is there; "" or "again"
  std::string json{};                // load: "" or "json"
  std::vector<std::string> words{};  // load: PATH…; query: the question

  std::vector<std::string> to_words() const {
    std::vector<std::string> all = {command, server, database, events, format, again, json};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  // kInvalidArgument: they are none.
  static Result<LoadArguments> parse(const std::vector<std::string>& all) {
    if (all.size() < 8 || (all[0] != "load" && all[0] != "query")) {
      return Error{Code::kInvalidArgument, "collect-load is started by collectctl load and query"};
    }
    return LoadArguments{all[0], all[1], all[2], all[3],
                         all[4], all[5], all[6], {all.begin() + 7, all.end()}};
  }
};

}  // namespace collect::warehouse
