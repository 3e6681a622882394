#include "tests/daemon/ctl/words/golden_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "formats/core/text/sanitized.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl::testing {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

namespace {

constexpr size_t kLeastNotes = 7;

bool is_note(const std::string& line) {
  return line.starts_with("# ") || line.starts_with("! ");
}

// Of the lines from `at` on: how many are notes that also follow each other from `before` on.
size_t same_notes(const std::vector<std::string>& lines, size_t before, size_t at) {
  size_t count = 0;
  while (at + count < lines.size() && before + count < at && is_note(lines[at + count]) &&
         lines[before + count] == lines[at + count]) {
    ++count;
  }
  return count;
}

std::vector<std::string> with_each_note_once(const std::vector<std::string>& lines) {
  std::vector<std::string> shorter;
  for (size_t at = 0; at < lines.size(); ++at) {
    size_t most = 0;
    size_t where = 0;
    for (size_t before = 0; before < at; ++before) {
      const size_t count = same_notes(lines, before, at);
      if (count <= most) continue;
      most = count;
      where = before;
    }
    shorter.push_back(lines[at]);
    if (most < kLeastNotes) continue;
    while (!lines[where].starts_with("$ ")) --where;
    shorter.push_back("  … and " + std::to_string(most - 1) + " more as after " + lines[where]);
    at += most - 1;
  }
  return shorter;
}

}  // namespace

void GoldenText::add(const std::string& line, const std::string& out, const std::string& err,
                     int code) {
  text_ += "$ " + line + "\n" + out;
  if (!out.empty() && out.back() != '\n') text_ += "\n(no end of the line)\n";
  for (const std::string& said : lines_of(err)) {
    if (kIsSanitized && said.ends_with(": built with a sanitizer")) continue;
    text_ += "! " + said + "\n";
  }
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
  const std::vector<std::string> said = with_each_note_once(lines_of(text_));
  const std::filesystem::path file = std::filesystem::path(WORDS_EXPECTED) / (name + ".txt");
  if (std::getenv("COLLECT_WRITE_WORDS") != nullptr) {
    std::ofstream out(file, std::ios::binary);
    for (const std::string& line : said) out << line << "\n";
    return;
  }
  const std::vector<uint8_t> bytes = reference::file_bytes(file);
  const std::vector<std::string> expected = lines_of({bytes.begin(), bytes.end()});
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
