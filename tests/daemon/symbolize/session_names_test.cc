#include "daemon/symbolize/session_names.h"

#include <gtest/gtest.h>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/lookup.h"
#include "daemon/symbolize/protocol.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/daemon/symbolize/scratch.h"

namespace collect::symbolize::test {
namespace {

storage::ModuleInfo module_of(uint32_t id, const std::string& path) {
  storage::ModuleInfo module;
  module.module_id = id;
  module.path = path;
  module.build_id = ElfFile().build_id;
  return module;
}

uint64_t id_of(uint32_t module, uint32_t address) {
  return uint64_t{module} << 32 | address;
}

size_t name_all(SessionNames& names, const std::string& program = SYMBOLIZER) {
  const Symbolizer symbolizer({program, {}, {"/"}});
  size_t steps = 0;
  for (; !names.done(); ++steps) {
    const Status stepped = names.step(symbolizer, nullptr);
    EXPECT_TRUE(stepped.ok()) << to_string(stepped.error());
    if (!stepped.ok()) break;
  }
  return steps;
}

std::string good_file(const Scratch& scratch) {
  ElfFile file;
  file.symbols = {{0x10, "_ZN1a1bEv"}, {0x20, "main"}};
  return scratch.write("good.so", file.bytes());
}

TEST(SessionNamesTest, NamesGoIntoTheManifest) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch)), module_of(1, "/nowhere/lib.so")};
  SessionNames names(manifest, {0x10, 0x20, 0x900, id_of(1, 4), id_of(9, 9)}, false);
  EXPECT_EQ(name_all(names), 2u);
  names.put_into(manifest);
  ASSERT_EQ(manifest.symbols.size(), 2u);
  EXPECT_EQ(manifest.symbols[0].name, "a::b()");
  EXPECT_EQ(manifest.symbols[1].name, "main");
  ASSERT_EQ(manifest.module_symbols.size(), 3u);
  EXPECT_EQ(manifest.module_symbols[0].functions, 3u);
  EXPECT_EQ(manifest.module_symbols[0].named, 2u);
  EXPECT_EQ(manifest.module_symbols[0].source, scratch.file("good.so"));
  EXPECT_EQ(manifest.module_symbols[1].problem, kNoFile);
  EXPECT_EQ(manifest.module_symbols[2].module_id, 9u);
  EXPECT_EQ(manifest.module_symbols[2].problem, "the agent named no such module");
}

// Also where the list's memory continues with what was a part of it.
TEST(SessionNamesTest, CountsNoFunctionBeyondTheList) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch))};
  std::vector<uint64_t> ids = {0x10, 0x20, 0x30};
  ids.pop_back();
  SessionNames names(manifest, ids, false);
  name_all(names);
  names.put_into(manifest);
  EXPECT_EQ(manifest.module_symbols.at(0).functions, 2u);
}

// 16,384 modules that name one file took minutes.
TEST(SessionNamesTest, OneFileOfManyModulesIsLookedUpOnce) {
  const Scratch scratch;
  const std::string path = good_file(scratch);
  storage::Manifest manifest;
  std::vector<uint64_t> ids;
  for (uint32_t id = 0; id < storage::kMaxModules; ++id) {
    manifest.modules.push_back(module_of(id, path));
    ids.push_back(id_of(id, 0x20));
  }
  SessionNames names(manifest, ids, false);
  EXPECT_EQ(name_all(names), 1u);
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), storage::kMaxModules);
  EXPECT_EQ(manifest.module_symbols.size(), storage::kMaxModules);
  for (const auto& outcome : manifest.module_symbols) EXPECT_EQ(outcome.named, 1u);
}

TEST(SessionNamesTest, BeyondTheLimitOfFilesTheRestIsSaid) {
  storage::Manifest manifest;
  std::vector<uint64_t> ids;
  for (uint32_t id = 0; id < kMaxSessionLookups + 5; ++id) {
    manifest.modules.push_back(module_of(id, "/nowhere/" + std::to_string(id)));
    ids.push_back(id_of(id, 1));
  }
  SessionNames names(manifest, ids, false);
  name_all(names, "/bin/true");
  names.put_into(manifest);
  ASSERT_EQ(manifest.module_symbols.size(), kMaxSessionLookups + 5);
  EXPECT_EQ(manifest.module_symbols[kMaxSessionLookups].problem,
            "not looked up: more than 1024 files in one session");
  EXPECT_EQ(manifest.module_symbols[kMaxSessionLookups - 1].problem,
            "ended: the answer is not whole");
}

TEST(SessionNamesTest, ReportsModulesBeyondTheTimeOfASession) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch)), module_of(1, "/nowhere/lib.so")};
  SessionNames names(manifest, {0x10, id_of(1, 4)}, false);
  const Symbolizer symbolizer({SYMBOLIZER, {}, {"/"}});
  const std::chrono::nanoseconds least(1);  // any lookup takes longer
  ASSERT_TRUE(names.step(symbolizer, nullptr, least).ok());
  ASSERT_TRUE(names.step(symbolizer, nullptr, least).ok());
  EXPECT_TRUE(names.done());
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), 1u);
  EXPECT_EQ(manifest.module_symbols.at(0).problem, "");
  EXPECT_EQ(manifest.module_symbols.at(1).problem,
            "not looked up: the session's files took more than 0 s");
}

TEST(SessionNamesTest, ManifestHasNoMoreNamesThanItMay) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch)), module_of(1, good_file(scratch))};
  for (uint32_t at = 0; at < kMaxManifestSymbols - 3; ++at) {
    manifest.symbols.push_back({id_of(7, at), "known"});
  }
  const std::vector<uint64_t> ids = {0x10, 0x20, id_of(1, 0x10), id_of(1, 0x20)};
  SessionNames names(manifest, ids, false);
  name_all(names);
  storage::Manifest full = manifest;
  names.put_into(full);
  EXPECT_EQ(full.symbols.size(), kMaxManifestSymbols);
  EXPECT_EQ(full.symbols_left_out, 1u);
  EXPECT_EQ(full.module_symbols.at(0).named, 2u);
  EXPECT_EQ(full.module_symbols.at(1).named, 1u);
  // One that the child left out is counted too.
  full = manifest;
  for (uint32_t at = 0; at < 2; ++at) full.symbols.push_back({id_of(8, at), "known"});
  SessionNames last(full, {0x10, 0x20}, false);
  name_all(last);
  last.put_into(full);
  EXPECT_EQ(full.symbols.size(), kMaxManifestSymbols);
  EXPECT_EQ(full.symbols_left_out, 1u);
  // A second request gets as many as a manifest may have, with any names there before.
  SessionNames again(manifest, ids, true);
  name_all(again);
  EXPECT_EQ(again.missing(), names.missing());
  manifest.symbols.clear();
  again.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), 4u);
  EXPECT_EQ(manifest.symbols_left_out, 0u);
}

TEST(SessionNamesTest, LimitsNamesToTheManifestMaximum) {
  const Scratch scratch;
  ElfFile file;
  for (uint32_t at = 1; at <= 13; ++at) file.symbols.push_back({at * 16, "f"});
  const std::string path = scratch.write("many.so", file.bytes());
  storage::Manifest manifest;
  std::vector<uint64_t> ids;
  for (uint32_t id = 0; id < storage::kMaxModules; ++id) {
    manifest.modules.push_back(module_of(id, path));
    for (const ElfSymbol& symbol : file.symbols) {
      ids.push_back(id_of(id, static_cast<uint32_t>(symbol.address)));
    }
  }
  ASSERT_GT(ids.size(), kMaxManifestSymbols);
  SessionNames names(manifest, ids, true);
  name_all(names);
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), kMaxManifestSymbols);
  EXPECT_EQ(manifest.symbols_left_out, ids.size() - kMaxManifestSymbols);
}

TEST(SessionNamesTest, ManifestThatHasTooManyNamesGetsNoMore) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch))};
  for (uint32_t at = 0; at < kMaxManifestSymbols + 1; ++at) {
    manifest.symbols.push_back({id_of(7, at), "known"});
  }
  SessionNames names(manifest, {0x10, 0x20}, false);
  name_all(names);
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), kMaxManifestSymbols + 1);
  EXPECT_EQ(manifest.symbols_left_out, 2u);
}

// 64 MiB: three names of 2 KiB in each of 16,384 modules are too many.
TEST(SessionNamesTest, AllNamesTogetherHaveALimit) {
  const Scratch scratch;
  ElfFile file;
  std::vector<uint32_t> addresses;
  for (const char letter : {'a', 'b', 'c'}) {
    addresses.push_back(16 * static_cast<uint32_t>(letter));
    file.symbols.push_back({addresses.back(), std::string(kMaxSymbolNameBytes, letter)});
  }
  const std::string path = scratch.write("long.so", file.bytes());
  storage::Manifest manifest;
  std::vector<uint64_t> ids;
  for (uint32_t id = 0; id < storage::kMaxModules; ++id) {
    manifest.modules.push_back(module_of(id, path));
    for (const uint32_t address : addresses) ids.push_back(id_of(id, address));
  }
  SessionNames names(manifest, ids, false);
  EXPECT_EQ(name_all(names), 1u);
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), kMaxManifestSymbolBytes / kMaxSymbolNameBytes);
  EXPECT_EQ(manifest.symbols_left_out, ids.size() - manifest.symbols.size());
}

// What one file's lookup lacked is still reported after the next ones.
TEST(SessionNamesTest, KeepsReportingMissingConfinement) {
  const Scratch scratch;
  const std::string program = scratch.file("program");
  std::ofstream(program) << "#!/bin/sh\ncat " << scratch.file("answer") << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  storage::Manifest manifest;
  manifest.modules = {module_of(0, "/a.so"), module_of(1, "/b.so")};
  SessionNames names(manifest, {0x10, id_of(1, 0x10)}, false);
  const Symbolizer symbolizer({program, {}, {"/"}});
  for (const char* missing : {"no filter", ""}) {
    auto answer = frame_bytes(FrameKind::kSource, encode_source({"file", "", missing}));
    const auto done = frame_bytes(FrameKind::kDone, encode_done({}));
    answer.insert(answer.end(), done.begin(), done.end());
    scratch.write("answer", answer);
    ASSERT_TRUE(names.step(symbolizer, nullptr).ok());
    EXPECT_EQ(names.missing(), "no filter");
  }
}

TEST(SessionNamesTest, OnePathWithTwoBuildIdsIsTwoFiles) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch)), module_of(1, good_file(scratch))};
  manifest.modules[1].build_id[0] ^= 1;
  SessionNames names(manifest, {0x10, id_of(1, 0x10)}, false);
  EXPECT_EQ(name_all(names), 2u);
  names.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), 1u);
  EXPECT_EQ(manifest.module_symbols.at(1).problem, kNoFile);
}

TEST(SessionNamesTest, PoisonousModuleCostsItsOwnNames) {
  const Scratch scratch;
  storage::Manifest manifest;
  // A program that is no symbolizer acts as one that a file has killed.
  manifest.modules = {module_of(0, "/nowhere/poison.so"), module_of(1, good_file(scratch))};
  SessionNames names(manifest, {0x10, id_of(1, 0x20)}, false);
  const Symbolizer killed({"/bin/false", {}, {"/"}});
  ASSERT_TRUE(names.step(killed, nullptr).ok());
  EXPECT_EQ(name_all(names), 1u);
  names.put_into(manifest);
  ASSERT_EQ(manifest.symbols.size(), 1u);
  EXPECT_EQ(manifest.module_symbols[0].problem, "ended with exit code 1");
  EXPECT_EQ(manifest.module_symbols[1].named, 1u);

  // It is not tried again, unless someone asks for that.
  SessionNames later(manifest, {0x10, id_of(1, 0x20)}, false);
  EXPECT_TRUE(later.done());
  SessionNames again(manifest, {0x10, id_of(1, 0x20)}, true);
  EXPECT_EQ(name_all(again), 2u);
  again.put_into(manifest);
  EXPECT_EQ(manifest.module_symbols[0].problem, kNoFile);
  EXPECT_EQ(manifest.symbols.size(), 1u);
}

// SYMBOLIZE.md "A session's names": the next start continues with the other files.
TEST(SessionNamesTest, HasNoOutcomeForModulesNotLookedUp) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch)), module_of(1, "/nowhere/lib.so")};
  const std::vector<uint64_t> ids = {0x10, id_of(1, 4)};
  SessionNames stopped(manifest, ids, false);
  ASSERT_TRUE(stopped.step(Symbolizer({SYMBOLIZER, {}, {"/"}}), nullptr).ok());
  EXPECT_FALSE(stopped.done());
  stopped.put_into(manifest);
  ASSERT_EQ(manifest.module_symbols.size(), 1u);
  EXPECT_EQ(manifest.module_symbols[0].module_id, 0u);
  SessionNames next(manifest, ids, false);
  EXPECT_EQ(name_all(next), 1u);
  next.put_into(manifest);
  ASSERT_EQ(manifest.module_symbols.size(), 2u);
  EXPECT_EQ(manifest.module_symbols[1].problem, kNoFile);
  EXPECT_EQ(manifest.symbols.size(), 1u);
}

TEST(SessionNamesTest, NewNamesReplaceTheOldOnes) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch))};
  manifest.symbols = {{0x10, "old"}, {0x30, "gone from the file"}};
  manifest.module_symbols.resize(1);
  manifest.module_symbols[0].source = "/old/good.so";
  SessionNames names(manifest, {0x10, 0x20, 0x30}, true);
  name_all(names);
  names.put_into(manifest);
  ASSERT_EQ(manifest.symbols.size(), 3u);
  EXPECT_EQ(manifest.symbols[0].name, "a::b()");
  EXPECT_EQ(manifest.symbols[1].name, "main");
  EXPECT_EQ(manifest.symbols[2].name, "gone from the file");
  EXPECT_EQ(manifest.module_symbols.at(0).source, scratch.file("good.so"));
}

TEST(SessionNamesTest, KeepsEarlierNames) {
  const Scratch scratch;
  storage::Manifest manifest;
  manifest.modules = {module_of(0, good_file(scratch))};
  SessionNames first(manifest, {0x10, 0x20}, true);
  name_all(first);
  first.put_into(manifest);
  std::filesystem::remove(scratch.file("good.so"));
  SessionNames second(manifest, {0x10, 0x20}, true);
  name_all(second);
  second.put_into(manifest);
  EXPECT_EQ(manifest.symbols.size(), 2u);
  EXPECT_EQ(manifest.module_symbols[0].source, scratch.file("good.so"));
}

}  // namespace
}  // namespace collect::symbolize::test
