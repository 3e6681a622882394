#include "storage/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>

#include "storage/elf_symbols.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {

// Known to the test by its address and its name. External and out of line, so that it has both.
__attribute__((noinline)) int function_to_be_named(const std::vector<int>& numbers) {
  return numbers.empty() ? 1 : numbers[0];
}

namespace {

uint64_t load_bias() {
  uint64_t bias = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_addr;  // the first one is the program
        return 1;
      },
      &bias);
  return bias;
}

uint64_t known_address() {
  return reinterpret_cast<uint64_t>(&function_to_be_named) - load_bias();
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

ModuleInfo own_module() {
  auto file = ElfSymbols::open(own_path());
  ModuleInfo module;
  module.path = own_path();
  if (file.ok()) {
    module.build_id = (*file)->build_id();
    module.size = (*file)->image_bytes();
  }
  return module;
}

constexpr char kName[] =
    "collect::storage::test::function_to_be_named(std::vector<int, std::allocator<int> > const&)";

class SymbolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (own_module().build_id.empty()) GTEST_SKIP() << "the linker gave this program no build id";
  }
  Manifest named(const ModuleInfo& module, std::vector<uint64_t> ids,
                 const std::vector<std::string>& directories = {}) {
    FunctionSet functions;
    for (const uint64_t id : ids) functions.add(id);
    Manifest manifest;
    manifest.modules = {module};
    name_functions(functions, directories, manifest);
    return manifest;
  }
  TemporaryDirectory root;
};

TEST_F(SymbolsTest, NamesAFunctionOfThisProgram) {
  ModuleInfo module = own_module();
  module.module_id = 7;
  const uint64_t id = 7ull << 32 | known_address();
  const Manifest manifest = named(module, {id, id + 1, 7ull << 32 | 0xFFFFFFF0});
  ASSERT_EQ(manifest.symbols.size(), 2u);
  EXPECT_EQ(manifest.symbols[0].function_id, id);
  EXPECT_EQ(manifest.symbols[0].name, kName);
  EXPECT_EQ(manifest.symbols[1].name, std::string(kName) + "+0x1");
  ASSERT_EQ(manifest.module_symbols.size(), 1u);
  EXPECT_EQ(manifest.module_symbols[0].functions, 3u);
  EXPECT_EQ(manifest.module_symbols[0].named, 2u);
  EXPECT_EQ(manifest.module_symbols[0].source, own_path());
}

TEST_F(SymbolsTest, AnotherBuildIdGivesNoNames) {
  ModuleInfo module = own_module();
  module.build_id[0] ^= 1;
  const Manifest manifest = named(module, {known_address()});
  EXPECT_TRUE(manifest.symbols.empty());
  EXPECT_NE(manifest.module_symbols[0].problem.find("another build id"), std::string::npos);
  EXPECT_TRUE(manifest.module_symbols[0].source.empty());
}

TEST_F(SymbolsTest, FindsFilesByBuildIdAndByName) {
  const ModuleInfo module = own_module();
  ModuleInfo elsewhere = module;
  elsewhere.path = "/data/app/lib/libapp.so";  // a device's path
  EXPECT_TRUE(named(elsewhere, {known_address()}, {root.path()}).symbols.empty());

  const std::string hex = hex_bytes(module.build_id);
  const std::string by_id = root.path() + "/.build-id/" + hex.substr(0, 2);
  std::filesystem::create_directories(by_id);
  std::filesystem::create_symlink(own_path(), by_id + "/" + hex.substr(2) + ".debug");
  EXPECT_EQ(named(elsewhere, {known_address()}, {root.path()}).symbols.size(), 1u);
  std::filesystem::remove_all(root.path() + "/.build-id");

  std::filesystem::create_symlink(own_path(), root.path() + "/libapp.so");
  EXPECT_EQ(named(elsewhere, {known_address()}, {root.path()}).symbols.size(), 1u);
  elsewhere.path = "/x/../libapp.so/..";  // a peer's words never walk through directories
  EXPECT_TRUE(named(elsewhere, {known_address()}, {root.path()}).symbols.empty());
}

TEST_F(SymbolsTest, APipeOrADeviceIsNotOpened) {
  ModuleInfo module = own_module();
  module.path = root.path() + "/pipe";
  ASSERT_EQ(::mkfifo(module.path.c_str(), 0600), 0);
  for (const std::string& path : {module.path, std::string("/dev/zero"), root.path()}) {
    module.path = path;
    const Manifest manifest = named(module, {known_address()});
    EXPECT_TRUE(manifest.symbols.empty());
    EXPECT_NE(manifest.module_symbols[0].problem.find("not a regular file"), std::string::npos);
  }
}

TEST_F(SymbolsTest, DamagedFilesGiveErrorsNotCrashes) {
  std::vector<uint8_t> bytes = read_file("/bin/true");
  if (bytes.empty()) GTEST_SKIP() << "no /bin/true";
  const std::string path = root.path() + "/damaged";
  const auto try_file = [&](const std::vector<uint8_t>& content) {
    write_file(path, content);
    auto file = ElfSymbols::open(path);
    if (!file.ok()) return;
    if ((*file)->load().ok()) (void)(*file)->find(0x1000);
  };
  for (size_t length = 0; length < bytes.size(); length += length < 128 ? 1 : 997) {
    try_file({bytes.begin(), bytes.begin() + long(length)});
  }
  for (size_t at = 0; at < bytes.size(); at += at < 1024 || at + 4096 > bytes.size() ? 3 : 211) {
    std::vector<uint8_t> damaged = bytes;
    damaged[at] ^= 0xff;
    try_file(damaged);
  }
}

TEST_F(SymbolsTest, AModuleThatNobodyNamed) {
  const Manifest manifest = named(own_module(), {known_address(), 99ull << 32});
  ASSERT_EQ(manifest.module_symbols.size(), 2u);
  EXPECT_EQ(manifest.module_symbols[1].module_id, 99u);
  EXPECT_EQ(manifest.module_symbols[1].problem, "the agent named no such module");
}

TEST(Demangle, LeavesWhatIsNotCxx) {
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()");
  EXPECT_EQ(demangled("_Zgarbage"), "_Zgarbage");
  EXPECT_EQ(demangled("_Z" + std::string(20'000, 'P')), "_Z" + std::string(20'000, 'P'));
}

TEST(FunctionSet, FindsEveryIdOfBothVersionsOnce) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    FakeStream stream(version, 1, 100);
    stream.add_many(100);
    std::vector<uint8_t> bytes = stream.index_bytes();
    std::set<uint64_t> expected;
    for (size_t i = 0; i < 100; ++i) {
      const uint64_t id = i % 9 == 0 ? 0 : i % 9 == 1 ? 1 : (i % 10) << 32 | (i * i);
      store_le(bytes.data() + i * 32 + 8, id);
      expected.insert(id);
    }
    FunctionSet functions;
    functions.add_events(bytes);
    functions.add_events(bytes);
    EXPECT_EQ(functions.sorted(), std::vector<uint64_t>(expected.begin(), expected.end()));
    EXPECT_EQ(functions.size(), expected.size());
  }
}

TEST(FunctionSet, IsBounded) {
  FunctionSet functions;
  for (uint64_t i = 1; i <= kMaxSeenFunctions; ++i) functions.add(i * 7);
  EXPECT_FALSE(functions.overflowed());
  functions.add(7);  // known
  EXPECT_FALSE(functions.overflowed());
  functions.add(1);
  EXPECT_TRUE(functions.overflowed());
  EXPECT_EQ(functions.size(), kMaxSeenFunctions);
  EXPECT_EQ(functions.sorted().size(), kMaxSeenFunctions);
}

}  // namespace
}  // namespace collect::storage::test
