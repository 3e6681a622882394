// What a lookup answers, in this process: which file, which names, and its limits. Symbols and
// their order are those of the ELF specification (gABI, "Symbol Table").
#include "daemon/symbolize/lookup/lookup.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "daemon/symbolize/limits.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/daemon/symbolize/scratch.h"

namespace collect::symbolize::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint8_t kLocal = 0x02;     // STB_LOCAL, STT_FUNC
constexpr uint8_t kWeak = 0x22;      // STB_WEAK, STT_FUNC
constexpr uint8_t kObject = 0x11;    // STB_GLOBAL, STT_OBJECT
constexpr uint8_t kIndirect = 0x1a;  // STB_GLOBAL, STT_GNU_IFUNC

struct Said {
  SourceFrame source;
  std::vector<std::string> names;  // "0x10 f"
  std::vector<uint32_t> functions;
  DoneFrame done;
  std::vector<FrameKind> kinds;
  size_t largest_body = 0;
};

class LookupTest : public ::testing::Test {
 protected:
  LookupTest() {
    request_.build_id = ElfFile().build_id;
    request_.roots = {"/"};
    request_.most_names = 1'000'000;
    request_.most_name_bytes = 1u << 30;
  }
  std::string write(const std::string& name, const ElfFile& file) {
    return scratch_.write(name, file.bytes());
  }
  // The module is at `path`, and `directories` are searched.
  Said look(const std::string& path, const std::vector<std::string>& directories = {}) {
    request_.module_path = path;
    request_.directories = directories;
    Said said;
    const Status status = look_up(request_, open_module_files(request_), "nothing is missing",
                                  [&said](FrameKind kind, Bytes body) {
                                    said.kinds.push_back(kind);
                                    said.largest_body = std::max(said.largest_body, body.size());
                                    take(kind, body, said);
                                    return Status();
                                  });
    EXPECT_TRUE(status.ok());
    return said;
  }
  Said look(const ElfFile& file) { return look(write("app.so", file)); }

  Scratch scratch_;
  LookupRequest request_;

 private:
  static void take(FrameKind kind, Bytes body, Said& said) {
    std::vector<NamedAddress> names;
    char address[24];
    switch (kind) {
      case FrameKind::kSource:
        said.source = *decode_source(body);
        return;
      case FrameKind::kNames:
        EXPECT_TRUE(decode_names(body, names).ok());
        for (const NamedAddress& named : names) {
          std::snprintf(address, sizeof address, "0x%x ", named.address);
          said.names.push_back(address + named.name);
        }
        return;
      case FrameKind::kFunctions:
        EXPECT_TRUE(decode_functions(body, said.functions).ok());
        return;
      default:
        said.done = *decode_done(body);
    }
  }
};

TEST_F(LookupTest, AddressIsWithinItsFunctionOrHasNoName) {
  ElfFile file;
  file.symbols = {{0x100, "f"}, {0x200, "entry", 0x12, 0}, {0x110, "next"}};
  request_.addresses = {0xff, 0x100, 0x101, 0x10f, 0x110, 0x11f, 0x120, 0x200, 0x201};
  EXPECT_THAT(look(file).names, ElementsAre("0x100 f", "0x101 f+0x1", "0x10f f+0xf", "0x110 next",
                                            "0x11f next+0xf", "0x200 entry"));
}

TEST_F(LookupTest, PrefersPublicNames) {
  ElfFile file;
  file.symbols = {{0x10, "local", kLocal}, {0x10, "weak", kWeak}, {0x10, "global"},
                  {0x20, "local", kLocal}, {0x20, "weak", kWeak}, {0x30, "local", kLocal},
                  {0x40, "first"},         {0x40, "second"}};
  request_.addresses = {0x10, 0x20, 0x30, 0x40};
  EXPECT_THAT(look(file).names,
              ElementsAre("0x10 global", "0x20 weak", "0x30 local", "0x40 first"));
}

// As in the GNU C library.
TEST_F(LookupTest, PrefersNamesOfACLibrarysUsers) {
  ElfFile file;
  file.symbols = {{0x10, "__read"},
                  {0x10, "read", kWeak},
                  {0x20, "_ZN1a1bEv"},
                  {0x20, "other", kWeak},
                  {0x30, "_start"},
                  {0x30, "local", kLocal},
                  {0x40, "pthread_cond_wait@@GLIBC_2.3.2"},
                  {0x50, "@"}};
  request_.addresses = {0x10, 0x20, 0x30, 0x40, 0x50};
  EXPECT_THAT(look(file).names, ElementsAre("0x10 read", "0x20 a::b()", "0x30 _start",
                                            "0x40 pthread_cond_wait", "0x50 @"));
}

TEST_F(LookupTest, OnlyFunctionsThatAreDefinedHaveNames) {
  ElfFile file;
  file.symbols = {{0x10, "data", kObject},
                  {0x20, "imported", 0x12, 16, 0},  // SHN_UNDEF
                  {0x30, "resolver", kIndirect},
                  {0x40, ""}};
  request_.addresses = {0x10, 0x20, 0x30, 0x40};
  EXPECT_THAT(look(file).names, ElementsAre("0x30 resolver"));
}

TEST_F(LookupTest, BuildIdDecides) {
  ElfFile file;
  file.symbols = {{0x10, "f"}};
  request_.addresses = {0x10};
  const Said right = look(file);
  EXPECT_EQ(right.source.path, scratch_.file("app.so"));
  EXPECT_EQ(right.source.problem, "");
  EXPECT_EQ(right.source.missing, "nothing is missing");
  EXPECT_THAT(right.kinds, ElementsAre(FrameKind::kSource, FrameKind::kNames, FrameKind::kDone));
  file.build_id.pop_back();
  const Said wrong = look(file);
  EXPECT_EQ(wrong.source.path, "");
  EXPECT_EQ(wrong.source.problem, kNoFile);
  EXPECT_THAT(wrong.kinds, ElementsAre(FrameKind::kSource, FrameKind::kDone));
}

// Some report sizes in whole pages, others in bytes.
TEST_F(LookupTest, ComparesSizesWithoutABuildId) {
  ElfFile file;
  file.build_id.clear();
  file.symbols = {{0x10, "f"}};
  file.loaded = {{0x1000, 0x1000}, {0x4000, 0x2000}};  // 0x5000 bytes from first to last
  request_.build_id.clear();
  request_.addresses = {0x10};
  const auto names_for = [&](uint64_t module_bytes) {
    request_.module_bytes = module_bytes;
    return look(file).names.size();
  };
  EXPECT_EQ(names_for(0x5000), 1u);
  EXPECT_EQ(names_for(0x5000 + 8191), 1u);
  EXPECT_EQ(names_for(0x5000 + 8192), 0u);
  EXPECT_EQ(names_for(0x5000 - 8191), 1u);
  EXPECT_EQ(names_for(0x5000 - 8192), 0u);
  EXPECT_EQ(names_for(0), 0u) << "nothing is known of it";
  request_.module_bytes = 0x5000;
  EXPECT_EQ(look(file).source.problem, "no build id: matched by path and image size");
  file.build_id = ElfFile().build_id;
  EXPECT_EQ(look(file).source.problem, kNoFileOfThisSize) << "another file than the one that ran";
  file.build_id.clear();
  file.loaded.clear();
  EXPECT_EQ(names_for(8191), 1u) << "an image of no bytes";
  EXPECT_EQ(names_for(8192), 0u);
  EXPECT_EQ(names_for(0), 0u);
}

TEST_F(LookupTest, FileWithItsWholeTableIsPreferred) {
  ElfFile stripped;
  stripped.table_type = 11;
  stripped.symbols = {{0x10, "exported"}};
  const std::string own = write("libapp.so", stripped);
  request_.addresses = {0x10};
  const Said alone = look(own);
  EXPECT_THAT(alone.names, ElementsAre("0x10 exported"));
  ElfFile whole;
  whole.symbols = {{0x10, "internal"}};
  std::filesystem::create_directories(scratch_.file("symbols"));
  write("symbols/libapp.so", whole);
  const Said both = look(own, {scratch_.file("symbols")});
  EXPECT_THAT(both.names, ElementsAre("0x10 internal"));
  EXPECT_EQ(both.source.path, scratch_.file("symbols/libapp.so"));
  // The first of those that are as good.
  write("symbols/libapp.so", stripped);
  EXPECT_EQ(look(own, {scratch_.file("symbols")}).source.path, own);
  write("libapp.so", whole);
  write("symbols/libapp.so", whole);
  EXPECT_EQ(look(own, {scratch_.file("symbols")}).source.path, own);
}

TEST_F(LookupTest, ReportsAMissingOrLyingSymbolTable) {
  ElfFile file;
  file.table_type = 1;  // SHT_PROGBITS
  request_.addresses = {0x10};
  EXPECT_THAT(look(file).source.problem, HasSubstr("no symbol table"));
  file = ElfFile();
  file.symbols = {{0x10, "f"}};
  file.claimed_table_bytes = kMaxSymbolTableBytes + 1;
  EXPECT_THAT(look(file).source.problem, HasSubstr("symbol table of 536870913 bytes"));
  file.claimed_table_bytes = kMaxSymbolTableBytes;  // which are not there, but may be
  EXPECT_THAT(look(file).source.problem, Not(HasSubstr("symbol table of")));
}

// Where the header of section `number` of a file begins.
size_t section_at(const std::vector<uint8_t>& file, size_t number) {
  return static_cast<size_t>(load_le<uint64_t>(&file[40])) + 64 * number;  // e_shoff
}

TEST_F(LookupTest, TableWhoseEntriesHaveNoBytesIsRefused) {
  ElfFile file;
  file.symbols = {{0x10, "f"}};
  std::vector<uint8_t> bytes = file.bytes();
  store_le<uint64_t>(&bytes[section_at(bytes, 1) + 56], 0);  // sh_entsize
  request_.addresses = {0x10};
  const Said said = look(scratch_.write("app.so", bytes));
  EXPECT_THAT(said.source.problem, HasSubstr("symbol table of 48 bytes"));
  EXPECT_THAT(said.names, IsEmpty());
}

// A file that has both tables, as most do, in either order.
TEST_F(LookupTest, TakesTheWholeTableInAnyOrder) {
  ElfFile file;
  file.symbols = {{0x10, "f"}};
  std::vector<uint8_t> bytes = file.bytes();
  const size_t whole = section_at(bytes, 1);
  const size_t exported = section_at(bytes, 4);  // a section more, behind the others
  ASSERT_EQ(exported, bytes.size());
  bytes.resize(exported + 64);
  store_le<uint16_t>(&bytes[60], 5);  // e_shnum
  std::copy_n(&bytes[whole], 64, &bytes[exported]);
  store_le<uint32_t>(&bytes[exported + 4], 11);   // sh_type: SHT_DYNSYM
  store_le<uint64_t>(&bytes[exported + 32], 24);  // sh_size: no symbol but number 0
  request_.addresses = {0x10};
  EXPECT_THAT(look(scratch_.write("app.so", bytes)).names, ElementsAre("0x10 f"));
  std::swap_ranges(&bytes[whole], &bytes[whole] + 64, &bytes[exported]);
  EXPECT_THAT(look(scratch_.write("app.so", bytes)).names, ElementsAre("0x10 f"));
}

// One symbol many times, behind every other address there is.
TEST_F(LookupTest, SymbolMayBeThereManyTimes) {
  ElfFile file;
  file.symbols.assign(10'000, {UINT64_MAX, "again"});
  file.symbols.push_back({0x10, "f"});
  std::vector<uint8_t> bytes = file.bytes();
  const auto table = static_cast<size_t>(load_le<uint64_t>(&bytes[section_at(bytes, 1) + 24]));
  // One st_name for all of them.
  for (size_t at = 1; at <= 10'000; ++at) store_le<uint32_t>(&bytes[table + 24 * at], 1);
  request_.addresses = {0x10};
  request_.patterns = {"f", "again"};
  const Said said = look(scratch_.write("app.so", bytes));
  EXPECT_THAT(said.names, ElementsAre("0x10 f"));
  EXPECT_THAT(said.functions, ElementsAre(0x10));
}

// SYMBOLIZE.md "Limits": 4 million symbols of a file. Most of these are none; the last ones are.
TEST_F(LookupTest, LimitsTheSymbolsOfAFile) {
  ElfFile file;
  file.symbols = {{0x10, "first"}, {0x20, "last"}, {0x30, "beyond"}};
  file.claimed_table_bytes = 24 * uint64_t{kMaxSymbols + 1};
  const std::vector<uint8_t> bytes = file.bytes();
  const std::string path = scratch_.write("app.so", bytes);
  const auto sections = load_le<uint64_t>(&bytes[40]);               // e_shoff
  const auto table = load_le<uint64_t>(&bytes[sections + 64 + 24]);  // sh_offset of the second
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(table + file.claimed_table_bytes)), 0);
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto place = [&](uint64_t from, uint64_t to) {
    out.seekp(static_cast<std::streamoff>(table + 24 * to));
    out.write(reinterpret_cast<const char*>(&bytes[table + 24 * from]), 24);
  };
  place(2, kMaxSymbols - 1);
  place(3, kMaxSymbols);
  const std::vector<uint8_t> none(48);
  out.seekp(static_cast<std::streamoff>(table + 24 * 2));
  out.write(reinterpret_cast<const char*>(none.data()), std::streamsize(none.size()));
  out.close();
  request_.addresses = {0x10, 0x20, 0x30};
  EXPECT_THAT(look(path).names, ElementsAre("0x10 first", "0x20 last"));
}

TEST_F(LookupTest, LimitsOfNamesAndBytes) {
  ElfFile file;
  for (uint32_t i = 1; i <= 10; ++i) {
    file.symbols.push_back({i * 16, "f" + std::to_string(i % 10)});  // two bytes each
    request_.addresses.push_back(i * 16);
  }
  request_.most_names = 4;
  Said said = look(file);
  EXPECT_EQ(said.names.size(), 4u);
  EXPECT_EQ(said.done.left_out, 6u);
  request_.most_names = 10;
  request_.most_name_bytes = 20;
  said = look(file);
  EXPECT_EQ(said.names.size(), 10u);
  EXPECT_EQ(said.done.left_out, 0u);
  request_.most_name_bytes = 19;
  said = look(file);
  EXPECT_EQ(said.names.size(), 9u);
  EXPECT_EQ(said.done.left_out, 1u);
}

TEST_F(LookupTest, LongNameIsCutAndKeepsNoOffset) {
  ElfFile file;
  file.symbols = {{0x10, std::string(kMaxSymbolNameBytes - 4, 'a')},
                  {0x20, std::string(kMaxSymbolNameBytes - 3, 'b')},
                  {0x30, std::string(kMaxMangledBytes + 1, 'c')}};
  request_.addresses = {0x11, 0x21, 0x31};
  const auto names = look(file).names;
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], "0x11 " + std::string(kMaxSymbolNameBytes - 4, 'a') + "+0x1");
  EXPECT_EQ(names[1], "0x21 " + std::string(kMaxSymbolNameBytes - 3, 'b'));
  EXPECT_EQ(names[2].size(), 5 + kMaxSymbolNameBytes);
  EXPECT_TRUE(names[2].ends_with("..."));
}

// 510 names leave room for 36 bytes, which is too little for the longest.
TEST_F(LookupTest, FramesFillUpToTheLongestName) {
  ElfFile file;
  for (uint32_t i = 1; i <= 512; ++i) {
    file.symbols.push_back({i * 16, std::string(i == 1 ? 1'048 : kMaxSymbolNameBytes, 'n')});
    request_.addresses.push_back(i * 16);
  }
  const Said said = look(file);
  EXPECT_EQ(said.names.size(), 512u);
  EXPECT_LE(said.largest_body, kMaxAnswerFrameBytes);
  EXPECT_GE(said.largest_body, kMaxAnswerFrameBytes - 2 * kMaxSymbolNameBytes);
}

TEST_F(LookupTest, LongAnswersComeInFramesOfBoundedSize) {
  ElfFile file;
  const size_t count = 3 * kMaxAnswerFrameBytes / kMaxSymbolNameBytes;
  for (size_t i = 1; i <= count; ++i) {
    file.symbols.push_back({i * 16, std::string(kMaxSymbolNameBytes, 'n')});
    request_.addresses.push_back(static_cast<uint32_t>(i * 16));
  }
  Said said = look(file);
  EXPECT_EQ(said.names.size(), count);
  EXPECT_LE(said.largest_body, kMaxAnswerFrameBytes);
  EXPECT_THAT(said.kinds, ElementsAre(FrameKind::kSource, FrameKind::kNames, FrameKind::kNames,
                                      FrameKind::kNames, FrameKind::kNames, FrameKind::kDone));
}

TEST_F(LookupTest, PatternsFindFunctionsByAddress) {
  ElfFile file;
  file.symbols = {{0x30, "_ZN1a1bEv"},
                  {0x10, "leaf"},
                  {0x20, "other"},
                  {0x1'0000'0000, "leaf"},  // no address within a module
                  {0xffff'ffff, "leaf"}};
  request_.patterns = {"leaf", "nowhere", "a::b"};
  const Said said = look(file);
  EXPECT_THAT(said.functions, ElementsAre(0x10, 0x30, 0xffffffff));
  EXPECT_THAT(said.done.matched, ElementsAre(1, 0, 1));
  EXPECT_THAT(said.names, IsEmpty());
  EXPECT_THAT(said.kinds, ElementsAre(FrameKind::kSource, FrameKind::kFunctions, FrameKind::kDone));
  EXPECT_THAT(look("/nowhere").done.matched, ElementsAre(0, 0, 0));
}

TEST_F(LookupTest, PatternMatchesAnyNameOfAnAddress) {
  ElfFile file;
  file.symbols = {{0x10, "public"}, {0x10, "inner", kLocal}};
  request_.patterns = {"inner"};
  EXPECT_THAT(look(file).functions, ElementsAre(0x10));
}

TEST_F(LookupTest, PatternsSkipUnnamedSymbols) {
  ElfFile file;
  file.symbols = {{0x10, "f"}, {0x20, ""}};
  request_.patterns = {"*"};
  EXPECT_THAT(look(file).functions, ElementsAre(0x10));
}

// The daemon is gone: nothing more is looked up.
TEST_F(LookupTest, StopsWhenAnAnswerCannotBeSent) {
  ElfFile file;
  file.symbols = {{0x10, "f"}};
  request_.addresses = {0x10};
  request_.patterns = {"f"};
  request_.module_path = write("app.so", file);
  for (const FrameKind refused :
       {FrameKind::kSource, FrameKind::kNames, FrameKind::kFunctions, FrameKind::kDone}) {
    std::vector<FrameKind> said;
    const Status status =
        look_up(request_, open_module_files(request_), "", [&](FrameKind kind, Bytes) {
          said.push_back(kind);
          return kind == refused ? Status(Error{Code::kIo, "gone"}) : Status();
        });
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(said.back(), refused);
  }
}

}  // namespace
}  // namespace collect::symbolize::test
