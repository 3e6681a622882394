#include "tests/daemon/ctl/words/words_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/convert/symbolize.h"
#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/report/report.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl::testing {
namespace {

using exports::Target;

namespace fs = std::filesystem;
using nlohmann::json;
using Strings = std::vector<std::string>;

// The words of one line: flags, options with a value, and the others, which are paths.
class Words {
 public:
  explicit Words(const Strings& words) {
    static const std::set<std::string> kFlags = {"--json",       "--strict", "--allow-incomplete",
                                                 "--merged",     "--detail", "--force",
                                                 "--percentiles"};
    for (size_t i = 1; i < words.size(); ++i) {
      if (kFlags.contains(words[i])) {
        flags_.insert(words[i]);
      } else if (words[i].starts_with("-")) {
        values_[words[i]].push_back(words.at(i + 1));
        ++i;
      } else {
        paths.push_back(words[i]);
      }
    }
  }
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  Strings all(const std::string& option) const {
    const auto found = values_.find(option);
    return found == values_.end() ? Strings() : found->second;
  }
  std::string one(const std::string& option) const {
    const Strings values = all(option);
    return values.empty() ? "" : values.back();
  }
  uint64_t number(const std::string& option, uint64_t otherwise) const {
    const std::string value = one(option);
    return value.empty() ? otherwise : std::stoull(value);
  }

  Strings paths;

 private:
  std::set<std::string> flags_;
  std::map<std::string, Strings> values_;
};

int run_dump(const Words& words, std::ostream& out, std::ostream& err) {
  DumpOptions options;
  options.paths = words.paths;
  options.json = words.has("--json");
  options.merged = words.has("--merged");
  options.detail = words.has("--detail");
  options.threads = words.all("--thread");
  options.functions = words.all("--function");
  options.when.from = words.one("--from");
  options.when.until = words.one("--until");
  options.limit = words.number("--limit", UINT64_MAX);
  return dump(options, out, err);
}

int run_report(const Words& words, std::ostream& out, std::ostream& err) {
  ReportOptions options;
  options.path = words.paths.at(0);
  static const std::map<std::string, ReportBy> kBy = {{"", ReportBy::kFunction},
                                                      {"thread", ReportBy::kThread},
                                                      {"module", ReportBy::kModule},
                                                      {"caller", ReportBy::kCaller}};
  static const std::map<std::string, ReportSort> kSort = {{"", ReportSort::kTotal},
                                                          {"self", ReportSort::kSelf},
                                                          {"calls", ReportSort::kCalls},
                                                          {"name", ReportSort::kName}};
  options.by = kBy.at(words.one("--by"));
  options.sort = kSort.at(words.one("--sort"));
  options.limit = words.number("--limit", UINT64_MAX);
  options.threads = words.all("--thread");
  options.when.from = words.one("--from");
  options.when.until = words.one("--until");
  options.other = words.one("--diff");
  options.graph = words.one("--graph");
  options.percentiles = words.has("--percentiles");
  options.json = words.has("--json");
  return report(options, out, err);
}

int run_convert(const Words& words, std::ostream& out, std::ostream& err) {
  static const std::map<std::string, Target> kTargets = {
      {"atf", Target::kAtf},          {"rtc", Target::kRtc},     {"wtf", Target::kWtf},
      {"wtf-json", Target::kWtfJson}, {"dial9", Target::kDial9}, {"folded", Target::kFolded}};
  ConvertOptions options;
  options.inputs = words.paths;
  options.to = kTargets.at(words.one("--to"));
  options.output = words.one("-o");
  if (!words.one("--atf-version").empty()) {
    options.atf_version = static_cast<uint8_t>(words.number("--atf-version", 2));
  }
  options.selection.functions = words.all("--function");
  options.force = words.has("--force");
  options.strict = words.has("--strict");
  options.json = words.has("--json");
  return convert(options, out, err);
}

uint64_t size_of(const fs::path& path) {
  if (fs::is_regular_file(path)) return fs::file_size(path);
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

}  // namespace

void WordsTest::SetUp() {
  setenv("TZ", "UTC", 1);  // sessions are named after the reader's time of day
  tzset();
  std::string name = (fs::path(::testing::TempDir()) / "words_XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  root_ = fs::canonical(name);
}

void WordsTest::put(const std::string& name, const Octets& bytes) {
  reference::write_file(root_ / name, bytes);
}

Octets WordsTest::octets(const std::string& name) const {
  return reference::file_bytes(root_ / name);
}

// So that lines stay short: `name` is the session.
void WordsTest::link(const std::string& name, const fs::path& session) {
  fs::create_directory_symlink(session, root_ / name);
}

int WordsTest::run_command(const Strings& line, std::ostream& out, std::ostream& err) {
  const Words words(line);
  const bool as_json = words.has("--json");
  if (line[0] == "inspect") return inspect({.path = words.paths.at(0), .json = as_json}, out, err);
  if (line[0] == "verify") {
    return verify({.path = words.paths.at(0),
                   .json = as_json,
                   .strict = words.has("--strict"),
                   .allow_incomplete = words.has("--allow-incomplete")},
                  out, err);
  }
  if (line[0] == "dump") return run_dump(words, out, err);
  if (line[0] == "report") return run_report(words, out, err);
  if (line[0] == "convert") return run_convert(words, out, err);
  if (line[0] == "symbolize") {
    return symbolize(
        {.path = words.paths.at(0), .directories = words.all("--symbols"), .json = as_json}, out,
        err);
  }
  EXPECT_EQ(line[0], "recover");
  return recover({.path = words.paths.at(0),
                  .output = words.one("-o"),
                  .force = words.has("--force"),
                  .json = as_json},
                 out, err);
}

// What was written is as large as is said.
void WordsTest::check_written(const std::string& report) {
  const json document = json::parse(report, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << report;
  for (const json& written : document.value("written", json::array())) {
    EXPECT_EQ(written["bytes"], size_of(written["path"].get<std::string>())) << report;
  }
}

int WordsTest::run(const std::string& line) {
  Strings words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& before = words[i - 1];
    const bool is_value = before.starts_with("--") && before != "--diff" && before != "--symbols" &&
                          before != "--json" && before != "--strict" &&
                          before != "--allow-incomplete" && before != "--merged" &&
                          before != "--detail" && before != "--force" && before != "--percentiles";
    if (!words[i].starts_with("-") && !is_value) words[i] = at(words[i]);
  }
  std::ostringstream out, err;
  const int code = run_command(words, out, err);
  said_ = out.str();
  const bool has_report = words[0] == "convert" && !said_.empty() && said_.front() == '{';
  if (has_report) check_written(said_);
  text_.add(line, said_, err.str(), code);
  return code;
}

void WordsTest::expect_words(const std::string& name) {
  text_.show_as(root_.string(), "DIR");
  text_.expect(name);
}

}  // namespace collect::ctl::testing
