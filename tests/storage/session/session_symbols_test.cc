// Which functions of a session are to be named, and what its last manifest says of them.
#include "storage/session/session_symbols.h"

#include <gtest/gtest.h>

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class SessionSymbolsTest : public testing::Test {
 protected:
  // Events of functions 1 to `count`.
  void add_functions(SessionSymbols& symbols, uint64_t count) {
    std::vector<uint8_t> events(count * sizeof(atf::IndexEventV2));
    for (uint64_t id = 0; id < count; ++id) {
      store_le(events.data() + id * 32 + 8, id + 1);
    }
    Page page;
    page.bytes = events;
    symbols.add(std::span(&page, 1));
  }

  TemporaryDirectory directory_;
  PosixFs fs_;
  FakeClock clock_;
  RtcRoller roller_{fs_, "/nowhere", {}, Durability::kOs, clock_};  // writes none
  LiveManifest live_{roller_, clock_};
};

TEST_F(SessionSymbolsTest, RequestsNamesOfOccurringFunctions) {
  SessionSymbols symbols(live_, true);
  symbols.finish();
  EXPECT_EQ(live_.manifest.symbols_state, SymbolsState::kNone) << "there is nothing to name";
  add_functions(symbols, 3);
  add_functions(symbols, 2);
  symbols.finish();
  EXPECT_EQ(symbols.functions(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(live_.manifest.symbols_state, SymbolsState::kPending);
  EXPECT_TRUE(live_.manifest.notes.empty());
}

TEST_F(SessionSymbolsTest, GathersNoNamesIfNoneAreWanted) {
  SessionSymbols symbols(live_, false);
  add_functions(symbols, 3);
  symbols.finish();
  EXPECT_TRUE(symbols.functions().empty());
  EXPECT_EQ(live_.manifest.symbols_state, SymbolsState::kNone);
}

TEST_F(SessionSymbolsTest, NamesThatWereKnownStay) {
  SessionSymbols symbols(live_, true);
  add_functions(symbols, 3);
  std::vector<Symbol> known(1);
  known[0].name = "main";
  symbols.adopt(known, {}, SymbolsState::kDone);
  symbols.finish();
  EXPECT_EQ(live_.manifest.symbols_state, SymbolsState::kDone);
  ASSERT_EQ(live_.manifest.symbols.size(), 1u);
  EXPECT_EQ(live_.manifest.symbols[0].name, "main");
}

TEST_F(SessionSymbolsTest, MoreThanAreNamedIsSaid) {
  SessionSymbols symbols(live_, true);
  add_functions(symbols, kMaxFunctionIds + 1);
  symbols.finish();
  EXPECT_EQ(symbols.functions().size(), kMaxFunctionIds);
  ASSERT_EQ(live_.manifest.notes.size(), 1u);
  EXPECT_EQ(live_.manifest.notes[0].what, "symbols: more than 1048576 functions");
}

// A session that is opened again has not seen its events.
TEST_F(SessionSymbolsTest, FileOfAThreadKnowsToo) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(20);
  auto writer = ThreadWriter::create(fs_, Durability::kOs, directory_.path() + "/thread_0",
                                     {atf::Version::kV2, {}, {}, {}, 100}, {1, 1000, "thread"});
  ASSERT_OK(writer);
  const Page page = stream.index_page(0, 20);
  ASSERT_OK((*writer)->append(std::span(&page, 1)));
  SessionSymbols seen(live_, true);
  seen.add(std::span(&page, 1));
  SessionSymbols read(live_, true);
  read.add_stored(**writer);
  EXPECT_FALSE(read.functions().empty());
  EXPECT_EQ(read.functions(), seen.functions());
  SessionSymbols unwanted(live_, false);
  unwanted.add_stored(**writer);
  EXPECT_TRUE(unwanted.functions().empty());
}

}  // namespace
}  // namespace collect::storage::test
