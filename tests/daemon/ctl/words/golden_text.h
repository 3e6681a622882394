// What commands print, word for word, against a text that was read line by line.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace collect::ctl::testing {

std::vector<std::string> lines_of(const std::string& text);

class GoldenText {
 public:
  // The line of a command, its standard output, its standard error ("! …") and the exit code.
  void add(const std::string& line, const std::string& out, const std::string& err, int code);
  // Where `text` is, `name` is compared: of folders and ports that no other run has.
  void show_as(const std::string& text, const std::string& name);
  // The whole text against expected/NAME.txt, in which notes ("# …", "! …") that came before, seven
  // or more together, are their first line and how many follow; with COLLECT_WRITE_WORDS=1 it is
  // written there.
  void expect(const std::string& name);

 private:
  std::string text_;
  std::vector<std::pair<std::string, std::string>> shown_;
};

}  // namespace collect::ctl::testing
