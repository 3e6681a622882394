// What a former collector left: who is waited for, what is sealed, and what is listed of it.
#include "daemon/ingest/session/old_sessions.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "daemon/ingest/session/core.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Hears of what is listed, and of what is to be named.
class Listing final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot&) override {}
  void agent_removed(AgentId) override {}
  void session_changed(const SessionSnapshot& session) override {
    const std::lock_guard lock(mutex_);
    listed_.push_back(session);
  }
  bool to_be_named(const std::string& name, const std::string& directory,
                   std::vector<uint64_t> functions) override {
    const std::lock_guard lock(mutex_);
    named_.push_back(name + " in " + directory + ": " + std::to_string(functions.size()));
    return true;
  }
  std::vector<SessionSnapshot> listed() {
    const std::lock_guard lock(mutex_);
    return listed_;
  }
  std::vector<std::string> named() {
    const std::lock_guard lock(mutex_);
    return named_;
  }

 private:
  std::mutex mutex_;
  std::vector<SessionSnapshot> listed_;
  std::vector<std::string> named_;
};

class FormerCollectorTest : public IngestTest {
 protected:
  ~FormerCollectorTest() override {
    if (core_) core_->stop_threads();
  }
  void find() {
    core_ = std::make_unique<IngestCore>(options_, posix_, listing_);
    old_ = std::make_unique<OldSessions>(
        *core_, [this](const storage::Manifest& manifest, const storage::ResumeKey& key,
                       const storage::SessionPath& session_path) {
          EXPECT_EQ(manifest.identity.pid, session_path.pid);
          EXPECT_EQ(key.bytes, key_.bytes);
          restored_.push_back(session_path.name);
        });
    old_->find();
  }
  // All of it, or as far as it goes.
  void list() {
    std::promise<void> listed;
    old_->list();
    pass_on(listed, kListedSessions + 10);
    listed.get_future().wait();
  }
  // The sealing thread does one thing after the other: so many turns are behind all of them.
  void pass_on(std::promise<void>& done, size_t turns) {
    core_->seal_threads.add({}, [this, &done, turns] {
      if (turns == 0) {
        done.set_value();
      } else {
        pass_on(done, turns - 1);
      }
    });
  }
  struct Left {
    uint32_t pid = 1;
    uint32_t recording = 1;
    bool has_key = true;
    uint32_t events = 0;
  };
  // Not sealed, with its name.
  std::unique_ptr<storage::Session> leave(const Left& left) {
    storage::SessionIdentity identity;
    identity.process_id = {static_cast<uint8_t>(left.pid)};
    identity.recording = left.recording;
    identity.pid = left.pid;
    auto made = storage::Session::create(posix_, options_.storage, identity,
                                         left.has_key ? std::optional(key_) : std::nullopt);
    EXPECT_TRUE(made.ok());
    auto writer = std::move(made).value();
    if (left.events != 0) {
      EXPECT_TRUE(writer->open_stream({1, 11, "thread", 1}).ok());
      const auto events = fakes::index_events(0, left.events);
      const Page page{fakes::index_page_header(1, 0, left.events), events, {}};
      EXPECT_TRUE(writer->append_pages({&page, 1}).ok());
    }
    EXPECT_TRUE(writer->commit().ok());
    return writer;
  }
  std::map<std::string, SessionState> listed() {
    std::map<std::string, SessionState> states;
    for (const SessionSnapshot& one : listing_.listed()) {
      EXPECT_TRUE(states.emplace(one.name, one.state).second) << one.name << " is listed twice";
    }
    return states;
  }

  Listing listing_;
  storage::ResumeKey key_{{1, 2, 3}, ""};
  std::vector<std::string> restored_;
  std::unique_ptr<IngestCore> core_;
  std::unique_ptr<OldSessions> old_;
};

TEST_F(FormerCollectorTest, OnlyWhoCanComeBackIsWaitedFor) {
  const std::string waits = leave({.pid = 1, .events = 10})->name();
  const std::string keyless = leave({.pid = 2, .has_key = false, .events = 10})->name();
  const std::string feed = leave({.pid = 3, .recording = 0, .events = 10})->name();
  const auto complete = leave({.pid = 4, .recording = 7, .events = 10});
  ASSERT_TRUE(complete->close_stream({.stream_id = 1, .thread_name = {}, .index_count = 10}).ok());
  ASSERT_TRUE(complete->seal(storage::SessionState::kComplete, "exit").ok());
  const auto broken = leave({.pid = 5, .events = 10});
  std::ofstream(broken->directory() + "/manifest.json") << "no manifest";
  capture_log();
  find();
  EXPECT_THAT(log_->text(), HasSubstr(waits + " was not sealed; it waits 60 s for its agent"));
  EXPECT_THAT(log_->text(), HasSubstr(keyless + " can't be resumed: "));
  EXPECT_THAT(restored_, ElementsAre(waits));
  EXPECT_TRUE(core_->completed.find({1}, 1, 1).is_known) << "it is in use, and not looked at";
  EXPECT_FALSE(core_->completed.find({2}, 1, 2).is_known);
  EXPECT_FALSE(core_->completed.find({4}, 7, 4).is_known);
  EXPECT_TRUE(core_->completed.find({9}, 1, 9).is_known);
  list();
  const auto states = listed();
  EXPECT_EQ(states.size(), 4u);
  EXPECT_FALSE(states.contains(waits));
  EXPECT_EQ(states.at(keyless), SessionState::kRecovered);
  EXPECT_EQ(states.at(feed), SessionState::kRecovered);
  EXPECT_EQ(states.at(complete->name()), SessionState::kComplete);
  EXPECT_EQ(states.at(broken->name()), SessionState::kRecovered);
  EXPECT_TRUE(core_->completed.find({2}, 1, 2).is_known);
  EXPECT_FALSE(core_->completed.find({2}, 1, 2).session_path) << "of what is complete alone";
  const auto known = core_->completed.find({4}, 7, 4).session_path;
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->directory, complete->directory());
  EXPECT_EQ(storage::read_manifest(posix_, options_.storage.root + "/" + waits)->state,
            storage::SessionState::kRecording);
}

// While one is sealed its reserve may still be there: it is finished, and not gone on with.
TEST_F(FormerCollectorTest, InterruptedSealIsFinished) {
  std::string name;
  {
    const auto writer = leave({.events = 10});
    name = writer->name();
    auto manifest = storage::read_manifest(posix_, writer->directory());
    ASSERT_TRUE(manifest.ok());
    manifest->sealing = true;
    manifest->sealing_state = storage::SessionState::kRecovered;
    std::ofstream(writer->directory() + "/manifest.json") << storage::manifest_to_json(*manifest);
  }
  find();
  EXPECT_THAT(restored_, IsEmpty());
  list();
  ASSERT_EQ(listed().size(), 1u);
  EXPECT_EQ(listed().at(name), SessionState::kRecovered);
}

// A conversion bears the identity of the recording that it was made of.
TEST_F(FormerCollectorTest, DoesNotTakeConversionsForTheRecording) {
  const auto complete = leave({.pid = 4, .recording = 7});
  ASSERT_TRUE(complete->seal(storage::SessionState::kComplete, "exit").ok());
  const std::filesystem::path from = std::filesystem::path(complete->directory()).parent_path();
  std::filesystem::rename(from, from.string() + "_atf1");
  find();
  list();
  EXPECT_EQ(listed().size(), 1u);
  EXPECT_TRUE(core_->completed.find({4}, 7, 4).is_known);
  EXPECT_FALSE(core_->completed.find({4}, 7, 4).session_path);
}

TEST_F(FormerCollectorTest, RequestsNamesForUnnamedSessions) {
  options_.storage.symbolize = true;
  const auto pending = leave({.pid = 1, .has_key = false, .events = 10});
  const auto sealed = leave({.pid = 2, .events = 10});
  ASSERT_TRUE(sealed->seal(storage::SessionState::kRecovered, "cut").ok());
  const auto empty = leave({.pid = 3});
  ASSERT_TRUE(empty->seal(storage::SessionState::kComplete, "exit").ok());
  find();
  list();
  EXPECT_EQ(listed().size(), 3u);
  const auto said = [](const auto& writer, const char* functions) {
    return writer->name() + " in " + writer->directory() + ": " + functions;
  };
  const std::string counted = std::to_string(sealed->functions().size());
  EXPECT_NE(counted, "0");
  EXPECT_THAT(listing_.named(),
              UnorderedElementsAre(said(pending, counted.c_str()), said(sealed, "0")))
      << "those of a sealed one are read from its files";

  options_.storage.symbolize = false;
  core_->stop_threads();
  find();
  list();
  EXPECT_EQ(listing_.named().size(), 2u) << "no one wants names";
}

// The newest first, so that what is of use soonest is there soonest.
TEST_F(FormerCollectorTest, NewestAreListedAndTheOthersLeftAlone) {
  const auto directory = [this](size_t number) {
    return root_ + "/session_20260101_000000" +
           (number == 1 ? std::string() : "_" + std::to_string(number)) + "/pid_1";
  };
  // Nothing was recorded there: each one that is looked at is removed.
  for (size_t number = 1; number <= kListedSessions + 2; ++number) {
    std::filesystem::create_directories(directory(number));
  }
  find();
  list();
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(directory(1)));
  EXPECT_TRUE(std::filesystem::exists(directory(2)));
  for (size_t number = 3; number <= kListedSessions + 2; ++number) {
    ASSERT_FALSE(std::filesystem::exists(directory(number))) << number;
  }
}

TEST_F(FormerCollectorTest, ListIsNewestFirst) {
  std::vector<std::string> names;
  for (uint32_t pid = 1; pid <= 3; ++pid) {
    const auto writer = leave({.pid = pid});
    ASSERT_TRUE(writer->seal(storage::SessionState::kComplete, "exit").ok());
    names.push_back(writer->name());
  }
  find();
  list();
  std::vector<std::string> order;
  for (const SessionSnapshot& one : listing_.listed()) order.push_back(one.name);
  EXPECT_THAT(order, ElementsAre(names[2], names[1], names[0]));
}

TEST_F(FormerCollectorTest, CollectorThatStopsListsNoMore) {
  const auto writer = leave({});
  ASSERT_TRUE(writer->seal(storage::SessionState::kComplete, "exit").ok());
  find();
  core_->stopping = true;
  list();
  EXPECT_THAT(listed(), IsEmpty());
}

TEST_F(FormerCollectorTest, WithoutARootThereIsNothing) {
  options_.storage.root = root_ + "/not_made_yet";
  find();
  list();
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_THAT(restored_, IsEmpty());
}

}  // namespace
}  // namespace collect::ingest
