// Who may read or remove a session as a whole, and how many conversions wait.
#include "daemon/collector/sessions/session_use.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/collector/detail/rule_book.h"
#include "daemon/collector/sessions/session_converter.h"
#include "storage/fs/posix_fs.h"

namespace collect::daemon {
namespace {

TEST(SessionUse, RefusesASecondUseWithAReason) {
  SessionUse use;
  auto first = use.take("a", "is being converted");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(use.take("b", "is being removed").ok());
  const auto second = use.take("a", "is being removed");
  EXPECT_EQ(second.code(), Code::kUnsupported);
  EXPECT_EQ(second.error().message,
            "session \"a\" is being converted right now; try again when that is done");
  std::shared_ptr<void> share = *first;
  first->reset();
  EXPECT_FALSE(use.take("a", "is being removed").ok()) << "a share of it is left";
  share.reset();
  EXPECT_TRUE(use.take("a", "is being removed").ok());
}

// It has not been started: what is added waits.
TEST(SessionConverterQueue, HasALimitAndIsAnsweredAtTheEnd) {
  storage::PosixFs fs;
  SessionConverter converter(fs, {});
  std::vector<Code> answers;
  const auto add = [&] {
    SessionConverter::Job job;
    job.progress = [](uint64_t, uint64_t) { return true; };
    job.done = [&answers](const Result<storage::MadeSession>& made) {
      answers.push_back(made.code());
    };
    converter.add(std::move(job));
  };
  for (size_t at = 0; at < kMaxConversions; ++at) add();
  EXPECT_TRUE(answers.empty());
  add();
  EXPECT_EQ(answers, std::vector<Code>{Code::kLimit});
  answers.clear();
  converter.stop();
  EXPECT_EQ(answers, std::vector<Code>(kMaxConversions, Code::kUnavailable));
  answers.clear();
  add();
  EXPECT_EQ(answers, std::vector<Code>{Code::kUnavailable});
}

TEST(RuleBook, KeepsWhatFitsAndKeepsWhatItHadOtherwise) {
  std::string root = std::filesystem::temp_directory_path() / "rule_book_XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  storage::PosixFs fs;
  RuleBook book(fs, root + "/new");
  ASSERT_TRUE(book.load().ok()) << "there are none yet";
  api::Agent agent;
  agent.set_process_name("app");
  EXPECT_FALSE(book.find(agent).has_value());
  api::Rules rules;
  rules.add_rules()->mutable_target()->set_process_name("other");
  rules.add_rules()->mutable_target()->set_process_name("app");
  ASSERT_TRUE(book.save(rules).ok());
  std::ifstream kept(root + "/new/" + kRulesFile);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), R"({
 "rules": [
  {
   "target": {
    "processName": "other"
   }
  },
  {
   "target": {
    "processName": "app"
   }
  }
 ]
}
)") << "for people, too";
  ASSERT_TRUE(book.find(agent).has_value());
  EXPECT_EQ(book.find(agent)->number, 2u);
  EXPECT_EQ(book.find(agent)->rule.target().process_name(), "app");

  api::Rules large;
  const auto size_with = [&](size_t text) {
    large.Clear();
    large.add_rules()->mutable_target()->set_tag(std::string(text, 'x'));
    return book.save(large);
  };
  EXPECT_EQ(size_with(kMaxRulesBytes).code(), Code::kLimit);
  EXPECT_EQ(book.rules().rules_size(), 2) << "those before hold on";
  // As much text as there is room for beside the JSON around it.
  ASSERT_TRUE(size_with(1).ok());
  const auto around = std::filesystem::file_size(root + "/new/" + kRulesFile) - 1;
  EXPECT_TRUE(size_with(kMaxRulesBytes - around).ok());
  EXPECT_EQ(std::filesystem::file_size(root + "/new/" + kRulesFile), kMaxRulesBytes);
  const Status beyond = size_with(kMaxRulesBytes - around + 1);
  EXPECT_EQ(beyond.code(), Code::kLimit);
  EXPECT_EQ(beyond.error().message,
            "the rules have 4194305 bytes as JSON, at most 4194304 are kept");
  EXPECT_FALSE(std::filesystem::exists(root + "/new/" + kRulesFile + std::string(".tmp")));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace collect::daemon
