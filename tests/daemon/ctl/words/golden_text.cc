#include "tests/daemon/ctl/words/golden_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/formats/reference_files.h"

namespace collect::ctl::testing {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void GoldenText::add(const std::string& line, const std::string& out, const std::string& err,
                     int code) {
  text_ += "$ " + line + "\n" + out;
  if (!out.empty() && out.back() != '\n') text_ += "\n(no end of the line)\n";
  for (const std::string& said : lines_of(err)) text_ += "! " + said + "\n";
  if (!err.empty() && err.back() != '\n') text_ += "! (no end of the line)\n";
  text_ += "exit code " + std::to_string(code) + "\n\n";
}

void GoldenText::show_as(const std::string& text, const std::string& name) {
  shown_.emplace_back(text, name);
}

void GoldenText::expect(const std::string& name) {
  for (const auto& [is, shown] : shown_) {
    for (size_t found; (found = text_.find(is)) != std::string::npos;) {
      text_.replace(found, is.size(), shown);
    }
  }
  // A manifest says when it was made: its size is compared elsewhere, and not its digits.
  text_ = std::regex_replace(text_, std::regex("(/pid_[0-9]+\",\"bytes\":)[0-9]+"), "$1N");
  text_ = std::regex_replace(text_, std::regex("(/pid_[0-9]+): [0-9.]+ k?B\n"), "$1: N\n");
  // And c.bin has the name of the folder in it.
  text_ = std::regex_replace(text_, std::regex("(/c.bin\",\"bytes\":)[0-9]+"), "$1N");
  const std::filesystem::path file = std::filesystem::path(WORDS_EXPECTED) / (name + ".txt");
  if (std::getenv("COLLECT_WRITE_WORDS") != nullptr) {
    reference::write_file(file, {text_.begin(), text_.end()});
    return;
  }
  const std::vector<uint8_t> bytes = reference::file_bytes(file);
  const std::vector<std::string> expected = lines_of({bytes.begin(), bytes.end()});
  const std::vector<std::string> said = lines_of(text_);
  std::string command;
  for (size_t i = 0; i < std::max(expected.size(), said.size()); ++i) {
    const std::string& is = i < said.size() ? said[i] : "(nothing more)";
    const std::string& was = i < expected.size() ? expected[i] : "(nothing more)";
    if (is.starts_with("$ ")) command = is;
    ASSERT_EQ(is, was) << file.string() << ":" << i + 1 << ", " << command
                       << "\nif that is right: cmake --build BUILD --target committed-texts";
  }
}

}  // namespace collect::ctl::testing
