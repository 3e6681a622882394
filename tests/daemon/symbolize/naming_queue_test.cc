#include "daemon/symbolize/naming_queue.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <future>
#include <map>
#include <thread>

#include "daemon/symbolize/limits.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest_file.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/daemon/symbolize/scratch.h"

namespace collect::symbolize::test {
namespace {

using storage::SymbolsState;

constexpr std::chrono::seconds kBound{60};

class NamingQueueTest : public ::testing::Test {
 protected:
  // A sealed session with one function of one module, still to be named.
  SealedSession session(const std::string& name, const std::string& module_path) {
    storage::Manifest manifest;
    manifest.state = storage::SessionState::kComplete;
    manifest.symbols_state = SymbolsState::kPending;
    storage::ModuleInfo module;
    module.path = module_path;
    module.build_id = ElfFile().build_id;
    manifest.modules = {module};
    std::filesystem::create_directories(scratch_.file(name));
    EXPECT_TRUE(storage::write_manifest(fs_, scratch_.file(name), manifest, false).ok());
    return {name, scratch_.file(name), {0x10}};
  }
  std::string good_file() {
    ElfFile file;
    file.symbols = {{0x10, "f"}};
    return scratch_.write("good.so", file.bytes());
  }
  // A lookup that does not end by itself.
  std::string endless_program() {
    const std::string path = scratch_.file("endless");
    std::ofstream(path) << "#!/bin/sh\nwhile :; do :; done\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }
  void start(const std::string& program = SYMBOLIZER) {
    queue_ = std::make_unique<NamingQueue>(
        fs_, SymbolizerOptions{program, {}, {"/"}},
        [this](const std::string& name, SymbolsState state, const std::string& said) {
          std::lock_guard lock(mutex_);
          named_[name] = state;
          said_[name] = said;
          changed_.notify_all();
        });
  }
  SymbolsState wait_for(const std::string& name) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kBound, [&] { return named_.contains(name); })) << name;
    return named_[name];
  }
  storage::Manifest manifest(const std::string& name) {
    auto read = storage::read_manifest(fs_, scratch_.file(name));
    EXPECT_TRUE(read.ok());
    return read.ok() ? *read : storage::Manifest();
  }
  bool eventually_begun(const std::string& name) {
    const auto end = std::chrono::steady_clock::now() + kBound;
    while (manifest(name).symbols_tries == 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  Scratch scratch_;
  storage::PosixFs fs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, SymbolsState> named_;
  std::map<std::string, std::string> said_;
  std::unique_ptr<NamingQueue> queue_;
};

TEST_F(NamingQueueTest, NamesASession) {
  start();
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  EXPECT_EQ(wait_for("one"), SymbolsState::kDone);
  const storage::Manifest named = manifest("one");
  EXPECT_EQ(named.symbols_state, SymbolsState::kDone);
  EXPECT_EQ(named.symbols_tries, 0u);
  EXPECT_EQ(named.state, storage::SessionState::kComplete);
  ASSERT_EQ(named.symbols.size(), 1u);
  EXPECT_EQ(named.symbols[0].name, "f");
}

TEST_F(NamingQueueTest, MissingProgramIsSaidAndTheSessionWhole) {
  start("/nowhere/collect-symbolizer");
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  EXPECT_EQ(wait_for("one"), SymbolsState::kFailed);
  const storage::Manifest failed = manifest("one");
  EXPECT_EQ(failed.symbols_state, SymbolsState::kFailed);
  EXPECT_EQ(failed.state, storage::SessionState::kComplete);
  ASSERT_EQ(failed.notes.size(), 1u);
  EXPECT_NE(failed.notes[0].what.find("/nowhere/collect-symbolizer"), std::string::npos);
}

TEST_F(NamingQueueTest, SessionThatIsGoneIsNoTrouble) {
  start();
  SealedSession gone = session("gone", good_file());
  std::filesystem::remove_all(gone.directory);
  ASSERT_TRUE(queue_->add(std::move(gone)));
  EXPECT_EQ(wait_for("gone"), SymbolsState::kNone);
  EXPECT_NE(said_["gone"].find("manifest.json"), std::string::npos) << said_["gone"];
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("gone")));
}

TEST_F(NamingQueueTest, StoppedSessionsStayPendingUntilTheNextStart) {
  start(endless_program());
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  ASSERT_TRUE(queue_->add(session("two", good_file())));
  ASSERT_TRUE(eventually_begun("one"));
  queue_->stop(std::chrono::milliseconds{0});
  EXPECT_EQ(manifest("one").symbols_state, SymbolsState::kPending);
  EXPECT_EQ(manifest("one").symbols_tries, 0u) << "an orderly end is no try that failed";
  EXPECT_EQ(manifest("two").symbols_state, SymbolsState::kPending);
  EXPECT_FALSE(queue_->add({"three", "", {}}));
  queue_.reset();
  named_.clear();
  start();
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(queue_->add({name, scratch_.file(name), {0x10}}));
    EXPECT_EQ(wait_for(name), SymbolsState::kDone);
  }
}

TEST_F(NamingQueueTest, ForgottenSessionsAreLeftAlone) {
  start(endless_program());
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  ASSERT_TRUE(queue_->add(session("two", good_file())));
  ASSERT_TRUE(eventually_begun("one"));
  for (const char* name : {"two", "one"}) {
    queue_->forget(name);
    std::filesystem::remove_all(scratch_.file(name));
  }
  queue_->stop(std::chrono::milliseconds{0});
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("one")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("two")));
  EXPECT_TRUE(named_.empty());
}

// What was wanted to end was the forgotten session's lookup alone.
TEST_F(NamingQueueTest, SessionBehindAForgottenOneIsNamed) {
  const std::string program = scratch_.file("program");
  std::ofstream(program) << "#!/bin/sh\n[ -e " << scratch_.file("go") << " ] && exec " << SYMBOLIZER
                         << "\nwhile :; do :; done\n";
  ::chmod(program.c_str(), 0755);
  start(program);
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  ASSERT_TRUE(queue_->add(session("two", good_file())));
  ASSERT_TRUE(eventually_begun("one"));
  std::ofstream(scratch_.file("go")) << "on";
  queue_->forget("one");
  EXPECT_EQ(wait_for("two"), SymbolsState::kDone);
  EXPECT_EQ(manifest("two").symbols.size(), 1u);
  queue_->stop(std::chrono::milliseconds{0});
  EXPECT_FALSE(named_.contains("one"));
}

// What the first file gave is kept, and the next start looks at the second alone.
TEST_F(NamingQueueTest, KeepsNamesFoundBeforeTheStop) {
  const std::string program = scratch_.file("program");
  std::ofstream(program) << "#!/bin/sh\nif [ ! -e " << scratch_.file("once") << " ]; then touch "
                         << scratch_.file("once") << "; exec " << SYMBOLIZER << "; fi\ntouch "
                         << scratch_.file("twice") << "\nwhile :; do :; done\n";
  ::chmod(program.c_str(), 0755);
  SealedSession two_files = session("one", good_file());
  storage::Manifest before = manifest("one");
  before.modules.push_back(before.modules[0]);
  before.modules[1].module_id = 1;
  before.modules[1].path = scratch_.file("other.so");
  std::filesystem::copy(good_file(), before.modules[1].path);
  ASSERT_TRUE(storage::write_manifest(fs_, two_files.directory, before, false).ok());
  two_files.functions = {0x10, uint64_t{1} << 32 | 0x10};
  start(program);
  ASSERT_TRUE(queue_->add(two_files));
  const auto end = std::chrono::steady_clock::now() + kBound;
  while (!std::filesystem::exists(scratch_.file("twice"))) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
  queue_->stop(std::chrono::milliseconds{0});
  EXPECT_EQ(named_["one"], SymbolsState::kPending);
  EXPECT_EQ(manifest("one").symbols.size(), 1u);
  EXPECT_EQ(manifest("one").module_symbols.size(), 1u);
  EXPECT_EQ(manifest("one").symbols_tries, 0u);
  named_.clear();
  start();
  ASSERT_TRUE(queue_->add(two_files));
  EXPECT_EQ(wait_for("one"), SymbolsState::kDone);
  EXPECT_EQ(manifest("one").symbols.size(), 2u);
  EXPECT_EQ(manifest("one").module_symbols.size(), 2u);
}

// Its room for functions is free again.
TEST_F(NamingQueueTest, ForgottenSessionKeepsNoFunctions) {
  const std::string program = scratch_.file("program");
  std::ofstream(program) << "#!/bin/sh\n[ -e " << scratch_.file("go") << " ] && exec " << SYMBOLIZER
                         << "\nwhile :; do :; done\n";
  ::chmod(program.c_str(), 0755);
  start(program);
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  ASSERT_TRUE(eventually_begun("one"));
  for (const char* name : {"large", "as large"}) {
    SealedSession large = session(name, good_file());
    large.functions.assign(kMaxQueuedFunctions, 0x10);
    ASSERT_TRUE(queue_->add(std::move(large)));
    if (name == std::string("large")) queue_->forget(name);
  }
  std::ofstream(scratch_.file("go")) << "on";
  queue_->forget("one");
  EXPECT_EQ(wait_for("as large"), SymbolsState::kDone);
  EXPECT_EQ(manifest("as large").symbols.size(), 1u);
}

// Holds the manifest's replacement up until the gate is opened.
class GatedFs final : public storage::Fs {
 public:
  Result<std::unique_ptr<storage::File>> open(const std::string& path,
                                              storage::OpenMode mode) override {
    return real_.open(path, mode);
  }
  Status make_directory(const std::string& path) override { return real_.make_directory(path); }
  Status remove_file(const std::string& path) override { return real_.remove_file(path); }
  Status remove_directory(const std::string& path) override { return real_.remove_directory(path); }
  Status sync_directory(const std::string& path) override { return real_.sync_directory(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return real_.list_directory(path);
  }
  bool exists(const std::string& path) override { return real_.exists(path); }
  Result<storage::SpaceInfo> space(const std::string& path) override { return real_.space(path); }
  Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path) override {
    return real_.lock(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    const Status done = real_.rename(from, to);
    written_ = true;
    return done;
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }

 private:
  storage::PosixFs real_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
  bool written_ = false;
};

// The caller of forget removes the directory next: nothing may still be written there.
TEST_F(NamingQueueTest, ForgottenSessionIsWrittenNoMore) {
  GatedFs gated;
  const SealedSession one = session("one", good_file());
  NamingQueue queue(gated, {SYMBOLIZER, {}, {"/"}},
                    [](const std::string&, SymbolsState, const std::string&) {});
  ASSERT_TRUE(queue.add(one));
  gated.wait_until_reached();
  std::promise<bool> returned;
  std::future<bool> was_written = returned.get_future();
  std::thread forgetting([&] {
    queue.forget("one");
    returned.set_value(gated.written());
  });
  // Time for a forget() that does not wait; one that does returns behind the gate.
  (void)was_written.wait_for(std::chrono::milliseconds(200));
  gated.open_gate();
  EXPECT_TRUE(was_written.get());
  forgetting.join();
}

TEST_F(NamingQueueTest, OrderlyEndWaitsForWhatIsQueued) {
  start();
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(queue_->add(session(name, good_file())));
  }
  queue_->stop(kBound);
  for (const char* name : {"one", "two", "three"}) {
    EXPECT_EQ(manifest(name).symbols_state, SymbolsState::kDone) << name;
  }
}

TEST_F(NamingQueueTest, SessionsThatRecordOrAreNamedAreLeftAlone) {
  const SealedSession recording = session("recording", good_file());
  storage::Manifest before = manifest("recording");
  before.state = storage::SessionState::kRecording;
  ASSERT_TRUE(storage::write_manifest(fs_, recording.directory, before, false).ok());
  const SealedSession done = session("done", good_file());
  before = manifest("done");
  before.symbols_state = SymbolsState::kDone;
  ASSERT_TRUE(storage::write_manifest(fs_, done.directory, before, false).ok());
  start();
  ASSERT_TRUE(queue_->add(recording));
  ASSERT_TRUE(queue_->add(done));
  EXPECT_EQ(wait_for("recording"), SymbolsState::kPending);
  EXPECT_EQ(wait_for("done"), SymbolsState::kDone);
  EXPECT_EQ(manifest("recording").symbols_tries, 0u);
  EXPECT_TRUE(manifest("recording").symbols.empty());
  EXPECT_TRUE(manifest("done").symbols.empty());
}

// Of a session that an earlier daemon sealed no one has the functions any more: its files say them.
TEST_F(NamingQueueTest, ReadsUnnamedFunctionsFromTheSession) {
  start();
  SealedSession unknown = session("one", good_file());
  unknown.functions.clear();
  ASSERT_TRUE(queue_->add(unknown));
  EXPECT_EQ(wait_for("one"), SymbolsState::kDone);
  EXPECT_TRUE(manifest("one").symbols.empty()) << "it has no threads";
}

// 64 MiB of ids; of a session beyond that they are read from its files, which has none here.
TEST_F(NamingQueueTest, OnlySoManyFunctionsAreKeptAtATime) {
  start();
  for (const char* name : {"one", "two", "beyond"}) {
    SealedSession large = session(name, good_file());
    const bool is_beyond = std::string_view(name) == "beyond";
    large.functions.assign(kMaxQueuedFunctions + (is_beyond ? 1 : 0), 0x10);
    ASSERT_TRUE(queue_->add(std::move(large)));
    EXPECT_EQ(wait_for(name), SymbolsState::kDone);
    EXPECT_EQ(manifest(name).symbols.size(), is_beyond ? 0u : 1u) << name;
  }
}

TEST_F(NamingQueueTest, QueueHasALimit) {
  start(endless_program());
  ASSERT_TRUE(queue_->add(session("one", good_file())));
  ASSERT_TRUE(eventually_begun("one"));
  for (size_t at = 0; at < kMaxQueuedSessions; ++at) {
    ASSERT_TRUE(queue_->add({"x" + std::to_string(at), scratch_.file("none"), {}})) << at;
  }
  EXPECT_FALSE(queue_->add({"beyond", scratch_.file("none"), {}}));
  queue_->forget("x0");
  EXPECT_TRUE(queue_->add({"now", scratch_.file("none"), {}}));
}

TEST_F(NamingQueueTest, ManifestFullOfNotesTakesNoMore) {
  const SealedSession noted = session("one", good_file());
  storage::Manifest before = manifest("one");
  before.notes.assign(storage::kMaxNotes, {1, "a note"});
  ASSERT_TRUE(storage::write_manifest(fs_, noted.directory, before, false).ok());
  start("/nowhere/collect-symbolizer");
  ASSERT_TRUE(queue_->add(noted));
  EXPECT_EQ(wait_for("one"), SymbolsState::kFailed);
  EXPECT_NE(said_["one"].find("/nowhere/collect-symbolizer"), std::string::npos);
  EXPECT_EQ(manifest("one").notes.size(), storage::kMaxNotes);
  EXPECT_EQ(manifest("one").symbols_state, SymbolsState::kFailed);
}

// A daemon that is killed each time while names are looked up ends with that by itself.
TEST_F(NamingQueueTest, CrashesAreCountedAndEndedWith) {
  const SealedSession poisoned = session("one", good_file());
  storage::Manifest before = manifest("one");
  before.symbols_tries = kMaxNamingTries;
  ASSERT_TRUE(storage::write_manifest(fs_, poisoned.directory, before, false).ok());
  start();
  ASSERT_TRUE(queue_->add(poisoned));
  EXPECT_EQ(wait_for("one"), SymbolsState::kFailed);
  EXPECT_NE(manifest("one").notes.at(0).what.find("3 times"), std::string::npos);
  EXPECT_EQ(manifest("one").symbols_tries, 0u);
}

TEST_F(NamingQueueTest, LastTryIsTaken) {
  const SealedSession tried = session("one", good_file());
  storage::Manifest before = manifest("one");
  before.symbols_tries = kMaxNamingTries - 1;
  ASSERT_TRUE(storage::write_manifest(fs_, tried.directory, before, false).ok());
  start();
  ASSERT_TRUE(queue_->add(tried));
  EXPECT_EQ(wait_for("one"), SymbolsState::kDone);
  EXPECT_EQ(manifest("one").symbols.size(), 1u);
}

}  // namespace
}  // namespace collect::symbolize::test
