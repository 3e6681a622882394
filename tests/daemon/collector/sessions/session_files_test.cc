// Sessions as files: listed, read, removed, converted and copied, and what is refused meanwhile.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <fstream>
#include <future>

#include "daemon/collector/sessions/session_converter.h"
#include "daemon/ingest/link/limits.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"
#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using principal::Resource;
using testing::SizeIs;

class CollectorFilesTest : public CollectorTest {
 protected:
  CollectorFilesTest() = default;
  explicit CollectorFilesTest(bool symbolize, bool pack = false)
      : CollectorTest({}, symbolize, pack) {}

  // A sealed session of 100 events.
  api::Session record(FakeAgent& agent) {
    EXPECT_TRUE(agent.connect(collector_->ingest_address()));
    begin(agent, 1, 100);
    const std::string name = collector_->session("")->name();
    EXPECT_TRUE(agent.close_stream(1, 100));
    EXPECT_TRUE(agent.end_recording());
    EXPECT_TRUE(eventually(
        [&] { return collector_->session(name)->state() == api::SESSION_STATE_COMPLETE; }));
    return *collector_->session(name);
  }
  Result<api::ConversionEnd> convert(
      const std::string& name,
      control::ConversionProgress progress = [](uint64_t, uint64_t) { return true; }) {
    Waiting<api::ConversionEnd> converted;
    collector_->convert_session(name, 1, std::move(progress), converted.callback());
    return converted.get();
  }
  Result<api::DeleteSessionResponse> remove(const std::string& name) {
    Waiting<api::DeleteSessionResponse> removed;
    collector_->methods().call(named<api::DeleteSessionRequest>(name), removed.callback());
    return removed.get();
  }
  Result<api::Session> snapshot(const std::string& name) {
    Waiting<api::Session> made;
    collector_->methods().call(named<api::SnapshotSessionRequest>(name), made.callback());
    return made.get();
  }
  template <class Request>
  Result<api::Session> ask(const std::string& name) {
    Waiting<api::Session> done;
    collector_->methods().call(named<Request>(name), done.callback());
    return done.get();
  }
  std::string path_of(const api::Session& session, const std::string& file) {
    return root_ + session.name().substr(sizeof "sessions" - 1) + "/" + file;
  }
  Result<std::shared_ptr<control::FileReader>> open(const std::string& name,
                                                    const std::string& path) {
    Waiting<std::shared_ptr<control::FileReader>> opened;
    collector_->open_file(name, path, opened.callback());
    return opened.get();
  }
};

TEST_F(CollectorFilesTest, SessionIsConvertedBesideTheFirst) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  const auto converted = convert(first.name(), [&](uint64_t done, uint64_t all) {
    progress.emplace_back(done, all);
    return true;
  });
  ASSERT_TRUE(converted.ok()) << to_string(converted.error());
  const std::string start = first.name().substr(0, first.name().find('/', 9));
  const std::string rest = first.name().substr(start.size());
  EXPECT_EQ(converted->session().name(), start + "_atf1" + rest);
  EXPECT_EQ(converted->session().state(), api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(converted->session().events(), 100u);
  EXPECT_EQ(converted->session().start_time().seconds(), first.start_time().seconds());
  EXPECT_EQ(converted->session().start_time().nanos(), first.start_time().nanos());
  EXPECT_EQ(converted->missing_size(), 0);
  EXPECT_EQ(converted->missing_left_out(), 0u);
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.front(), (std::pair<uint64_t, uint64_t>{0, 0}));
  EXPECT_EQ(progress.back().first, progress.back().second);
  Waiting<api::Manifest> manifest;
  collector_->methods().call(named<api::GetManifestRequest>(converted->session().name()),
                             manifest.callback());
  EXPECT_EQ(manifest.get()->format_version_minor(), 1u);
  EXPECT_EQ(collector_->sessions({}).size(), 2u);
  EXPECT_EQ(collector_->session("")->name(), first.name()) << "what was recorded comes first";

  EXPECT_EQ(convert(first.name()).code(), Code::kAlreadyExists);
  EXPECT_EQ(convert(converted->session().name()).code(), Code::kUnsupported);
  EXPECT_EQ(convert("sessions/none/pid_1").code(), Code::kNotFound);
}

TEST_F(CollectorFilesTest, DoesNotRemoveSessionsDuringConversion) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  std::promise<void> begun;
  std::promise<void> go_on;
  auto may_go_on = go_on.get_future();
  Waiting<api::ConversionEnd> converted;
  collector_->convert_session(
      first.name(), 1,
      [&, is_first = true](uint64_t, uint64_t) mutable {
        if (!std::exchange(is_first, false)) return true;
        begun.set_value();
        return may_go_on.wait_for(fakes::kPatience) == std::future_status::ready;
      },
      converted.callback());
  begun.get_future().wait();
  const std::string bare = first.name().substr(9);
  const auto removed = remove(first.name());
  EXPECT_EQ(removed.code(), Code::kUnsupported);
  EXPECT_EQ(removed.error().message,
            "session \"" + bare + "\" is being converted right now; try again when that is done");
  EXPECT_EQ(convert(first.name()).code(), Code::kUnsupported);
  go_on.set_value();
  const auto end = converted.get();
  ASSERT_TRUE(end.ok()) << to_string(end.error());
  EXPECT_TRUE(remove(first.name()).ok());
  EXPECT_THAT(collector_->sessions({}), SizeIs(1));
}

TEST_F(CollectorFilesTest, CancelledConversionLeavesNothing) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  const auto cancelled = convert(first.name(), [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(cancelled.code(), Code::kCancelled);
  EXPECT_EQ(cancelled.error().message, "it was cancelled; nothing is left of it");
  EXPECT_THAT(collector_->sessions({}), SizeIs(1));
  EXPECT_TRUE(convert(first.name()).ok()) << "it is in use no more";
}

TEST_F(CollectorFilesTest, RefusesToConvertOrRemoveUnsealedSessions) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  const std::string name = collector_->session("")->name();
  const std::string why =
      "session \"" + name.substr(9) + "\" is not sealed yet; StopSession seals it";
  EXPECT_EQ(convert(name).error().message, why);
  EXPECT_EQ(remove(name).error().message, why);
  EXPECT_EQ(remove(name).code(), Code::kUnsupported);
  Waiting<api::ListFilesResponse> listed;
  collector_->methods().call(named<api::ListFilesRequest>(name), listed.callback());
  const auto files = listed.get();
  ASSERT_TRUE(files.ok()) << to_string(files.error());
  EXPECT_EQ(files->session(), name);
  EXPECT_EQ(files->state(), api::SESSION_STATE_ACTIVE);
}

TEST_F(CollectorFilesTest, OnlyWhatRecordsHasSnapshots) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  EXPECT_EQ(snapshot("").error().message, "no session records now");
  const auto sealed = snapshot(first.name());
  EXPECT_EQ(sealed.code(), Code::kUnsupported);
  EXPECT_EQ(sealed.error().message,
            "session \"" + first.name().substr(9) +
                "\" is sealed: it does not change any more, and needs no snapshot");
  EXPECT_EQ(snapshot("sessions/none/pid_1").code(), Code::kNotFound);
}

TEST_F(CollectorFilesTest, MakesOneSnapshotAtATimeAndDescribesIt) {
  FakeAgent agent(process(1, "app", 10));
  std::promise<void> begun;
  std::promise<void> go_on;
  auto may_go_on = go_on.get_future();
  agent.on_command(
      [&, is_first = true](const wire::Command& command, wire::CommandResult& result) mutable {
        EXPECT_TRUE(command.has_flush());
        result.set_at_ns(1'234'567);
        if (!std::exchange(is_first, false)) return;
        begun.set_value();
        may_go_on.wait_for(fakes::kPatience);
      });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  const api::Session recorded = *collector_->session("");
  Waiting<api::Session> made;
  collector_->methods().call(named<api::SnapshotSessionRequest>(""), made.callback());
  begun.get_future().wait();
  const auto second = snapshot(recorded.name());
  EXPECT_EQ(second.code(), Code::kUnsupported);
  EXPECT_EQ(second.error().message,
            "session \"" + recorded.name().substr(9) +
                "\" is being copied into a snapshot right now; try again when that is done");
  go_on.set_value();
  const auto shown_made = made.get();
  ASSERT_TRUE(shown_made.ok()) << to_string(shown_made.error());
  EXPECT_EQ(shown_made->start_time().nanos(), recorded.start_time().nanos());
  EXPECT_EQ(shown_made->start_time().seconds(), recorded.start_time().seconds());
  const auto manifest = storage::read_manifest(fs_, shown_made->path());
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->reason, "a snapshot; the recording continued");
  ASSERT_EQ(manifest->threads.size(), 1u);
  EXPECT_EQ(manifest->threads[0].end_ns, 1'234'567u) << "the moment that the agent said";
  EXPECT_TRUE(snapshot("").ok()) << "the next may be made";
}

TEST_F(CollectorFilesTest, FilesAreReadInPieces) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  EXPECT_FALSE(open(first.name(), "thread_9/index.atf").ok());
  EXPECT_EQ(open("sessions/none/pid_1", "manifest.json").code(), Code::kNotFound);
  const auto reader = open(first.name(), "thread_0/index.atf");
  ASSERT_TRUE(reader.ok());
  const auto read = [&](uint64_t offset, size_t bytes) {
    Waiting<std::string> piece;
    (*reader)->read(offset, bytes, piece.callback());
    return *piece.get();
  };
  EXPECT_EQ(read(0, 4), "ATI2");
  EXPECT_EQ(read(1, 2), "TI");
  EXPECT_EQ(read((*reader)->size() - 64, 4), "2ITA");
  EXPECT_EQ(read((*reader)->size() - 4, 100).size(), 4u) << "as much as there is";
  EXPECT_EQ(read((*reader)->size(), 1), "");
}

TEST_F(CollectorFilesTest, CountsRemovedFilesAndBytes) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  uint64_t files = 0;
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(first.path())) {
    if (!entry.is_regular_file()) continue;
    ++files;
    bytes += entry.file_size();
  }
  const auto removed = remove(first.name());
  ASSERT_TRUE(removed.ok()) << to_string(removed.error());
  EXPECT_EQ(removed->session(), first.name());
  EXPECT_EQ(removed->removed_files(), files);
  EXPECT_EQ(removed->removed_bytes(), bytes);
  EXPECT_THAT(collector_->sessions({}), SizeIs(0));
  EXPECT_EQ(remove(first.name()).code(), Code::kNotFound);
}

// Someone was faster.
TEST_F(CollectorFilesTest, SessionWithoutADirectoryIsForgotten) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  std::filesystem::remove_all(std::filesystem::path(first.path()).parent_path());
  Waiting<api::Manifest> manifest;
  collector_->methods().call(named<api::GetManifestRequest>(first.name()), manifest.callback());
  EXPECT_FALSE(manifest.get().ok());
  const auto removed = remove(first.name());
  ASSERT_TRUE(removed.ok()) << to_string(removed.error());
  EXPECT_EQ(removed->session(), first.name());
  EXPECT_EQ(removed->removed_files(), 0u);
  EXPECT_EQ(removed->removed_bytes(), 0u);
  EXPECT_THAT(collector_->sessions({}), SizeIs(0));
}

TEST_F(CollectorFilesTest, OtherSessionsAreMadeWithLowPriority) {
  const auto niceness = []() -> int {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
      if (name != "converter") continue;
      return ::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoul(task.path().filename())));
    }
    return -1;
  };
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_TRUE(eventually([&] { return niceness() == 10; })) << niceness();
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

// What a session that is not sealed costs, is charged for as long as one is made: exactly so much
// must be free.
TEST_F(CollectorFilesTest, ChargesConversionsToTheBudget) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  collector_.reset();
  const auto session_path = storage::parse_session_path(root_, first.name().substr(9));
  ASSERT_TRUE(session_path);
  const auto convert_with = [&](Resource resource, uint64_t free) {
    principal::BudgetLimits limits;
    limits[resource] = {free, free, "a_setting"};
    principal::Budget budget(limits);
    storage::SessionOptions options;
    options.root = root_;
    SessionConverter converter(fs_, options);
    EXPECT_TRUE(converter.start(budget).ok());
    std::promise<Result<storage::MadeSession>> made;
    SessionConverter::Job job;
    job.from = *session_path;
    job.wanted = atf::Version::kV1;
    job.progress = [](uint64_t, uint64_t) { return true; };
    job.done = [&](const Result<storage::MadeSession>& result) { made.set_value(result); };
    converter.add(std::move(job));
    const auto result = made.get_future().get();
    for (const Resource one : {Resource::kSessions, Resource::kMemory, Resource::kInodes}) {
      EXPECT_EQ(budget.used(one), 0u) << "it is given back";
    }
    if (result.ok()) {
      std::filesystem::remove_all(
          std::filesystem::path(result->session_path.directory).parent_path());
    }
    return result.ok() ? "made" : std::string(code_name(result.code()));
  };
  const std::string none_left(code_name(Code::kExhausted));
  const uint64_t memory = ingest::kSessionMemory + ingest::kStreamMemory;
  const uint64_t files = storage::kFilesPerSession + storage::kFilesPerThread;
  EXPECT_EQ(convert_with(Resource::kSessions, 1), "made");
  EXPECT_EQ(convert_with(Resource::kSessions, 0), none_left);
  EXPECT_EQ(convert_with(Resource::kMemory, memory), "made");
  EXPECT_EQ(convert_with(Resource::kMemory, memory - 1), none_left);
  EXPECT_EQ(convert_with(Resource::kInodes, files), "made");
  EXPECT_EQ(convert_with(Resource::kInodes, files - 1), none_left);
}

class CollectorNamesTest : public CollectorFilesTest {
 protected:
  CollectorNamesTest() : CollectorFilesTest(true) {}
};

TEST_F(CollectorNamesTest, SealedSessionIsShownWithItsNames) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  const std::string name = collector_->session("")->name();
  ASSERT_TRUE(agent.close_stream(1, 100));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(
      eventually([&] { return collector_->session(name)->symbols() == api::SYMBOLS_STATE_DONE; }));
  EXPECT_EQ(collector_->session(name)->state(), api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(collector_->session(name)->events(), 100u);
}

// ---- packed

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(CollectorFilesTest, SessionIsPackedAndUnpacked) {
  FakeAgent agent(process(1, "app", 10));
  const api::Session first = record(agent);
  EXPECT_FALSE(first.packed());
  EXPECT_NE(first.stored_bytes(), 0u);
  const std::string file = path_of(first, "thread_0/index.atf");
  const std::string before = bytes_of_file(file);
  ASSERT_FALSE(before.empty());
  const auto packed = ask<api::PackSessionRequest>(first.name());
  ASSERT_TRUE(packed.ok()) << to_string(packed.error());
  EXPECT_EQ(packed->name(), first.name());
  EXPECT_TRUE(packed->packed());
  EXPECT_EQ(packed->stored_bytes(), 0u);
  EXPECT_NE(packed->container_bytes(), 0u);
  EXPECT_EQ(packed->events(), 100u);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(path_of(first, storage::kPackedLanesFile)));
  // It is converted as before.
  EXPECT_TRUE(convert(first.name()).ok());
  const auto again = ask<api::PackSessionRequest>(first.name());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->container_bytes(), packed->container_bytes());
  const auto unpacked = ask<api::UnpackSessionRequest>(first.name());
  ASSERT_TRUE(unpacked.ok()) << to_string(unpacked.error());
  EXPECT_FALSE(unpacked->packed());
  EXPECT_EQ(unpacked->stored_bytes(), first.stored_bytes());
  EXPECT_EQ(bytes_of_file(file), before);
  EXPECT_EQ(collector_->session(first.name())->packed(), false);
  ASSERT_TRUE(ask<api::PackSessionRequest>(first.name()).ok());
  EXPECT_TRUE(remove(first.name()).ok());
  EXPECT_FALSE(std::filesystem::exists(path_of(first, "")));
}

TEST_F(CollectorFilesTest, WhatCannotBePackedStays) {
  EXPECT_EQ(ask<api::PackSessionRequest>("none").code(), Code::kNotFound);
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  EXPECT_EQ(ask<api::PackSessionRequest>("").code(), Code::kUnsupported);
  EXPECT_EQ(ask<api::UnpackSessionRequest>("").code(), Code::kUnsupported);
  const std::string name = collector_->session("")->name();
  ASSERT_TRUE(agent.close_stream(1, 100));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(eventually(
      [&] { return collector_->session(name)->state() == api::SESSION_STATE_COMPLETE; }));
  const api::Session session = *collector_->session(name);
  std::ofstream(path_of(session, "thread_0/index.atf"), std::ios::app) << "more";
  const auto damaged = ask<api::PackSessionRequest>(name);
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.error().message, testing::HasSubstr("thread_0/index.atf"));
  EXPECT_TRUE(std::filesystem::exists(path_of(session, "thread_0/index.atf")));
  EXPECT_FALSE(collector_->session(name)->packed());
}

// A conversion that was begun before is waited for; that a removal is refused meanwhile ends
// nothing.
TEST_F(CollectorFilesTest, PackingWaitsForTheConversion) {
  FakeAgent agent(process(1, "app", 10));
  const std::string name = record(agent).name();
  std::promise<void> begun, may_end;
  auto end = may_end.get_future().share();
  Waiting<api::ConversionEnd> converted;
  collector_->convert_session(
      name, 1,
      [&, first = true](uint64_t, uint64_t) mutable {
        if (std::exchange(first, false)) begun.set_value();
        end.wait();
        return true;
      },
      converted.callback());
  begun.get_future().wait();
  Waiting<api::Session> packed;
  collector_->methods().call(named<api::PackSessionRequest>(name), packed.callback());
  const auto removed = remove(name);
  EXPECT_EQ(removed.code(), Code::kUnsupported);
  EXPECT_FALSE(collector_->session(name)->packed());
  may_end.set_value();
  EXPECT_TRUE(converted.get().ok());
  const auto session = packed.get();
  ASSERT_TRUE(session.ok()) << to_string(session.error());
  EXPECT_TRUE(session->packed());
}

class PackingCollectorTest : public CollectorFilesTest {
 protected:
  PackingCollectorTest() : CollectorFilesTest(false, true) {}
};

TEST_F(PackingCollectorTest, SealedSessionsArePackedByThemselves) {
  FakeAgent agent(process(1, "app", 10));
  const std::string name = record(agent).name();
  EXPECT_TRUE(eventually([&] { return collector_->session(name)->packed(); }));
  EXPECT_EQ(collector_->session(name)->stored_bytes(), 0u);
  // What was made of it is wanted as it is.
  const auto converted = convert(name);
  ASSERT_TRUE(converted.ok()) << to_string(converted.error());
  EXPECT_TRUE(std::filesystem::exists(path_of(converted->session(), "thread_0/index.atf")));
  const auto unpacked = ask<api::UnpackSessionRequest>(name);
  ASSERT_TRUE(unpacked.ok());
  EXPECT_FALSE(unpacked->packed());
}

}  // namespace
}  // namespace collect::daemon
