// Names and lines of Mach-O files, as clang, LLVM's linker and dsymutil make them, against what
// llvm-nm and llvm-symbolizer say of the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/lookup.h"
#include "daemon/symbolize/lookup/mach_o.h"
#include "daemon/symbolize/symbolizer.h"
#include "tests/daemon/symbolize/scratch.h"
#include "tests/formats/programs.h"

namespace collect::symbolize::test {
namespace {

constexpr char kSource[] =
    "namespace app {\n"
    "__attribute__((noinline)) int parse(const char* text) {\n"
    "  int n = 0;\n"
    "  while (*text) n += *text++;\n"
    "  return n;\n"
    "}\n"
    "struct Node { int walk(int depth); };\n"
    "int Node::walk(int depth) {\n"
    "  return depth == 0 ? parse(\"x\") : walk(depth - 1) + 1;\n"
    "}\n"
    "}\n"
    "extern \"C\" int entry(int n) {\n"
    "  app::Node node;\n"
    "  return node.walk(n);\n"
    "}\n"
    "static int hidden(int n) { return n * 3; }\n"
    "extern \"C\" int (*table)(int) = hidden;\n";
constexpr char kArm64[] = "arm64";
constexpr char kX86[] = "x86_64";

std::string output_of(const std::string& command) {
  const auto ran = reference::run(command + " 2>&1");
  EXPECT_EQ(ran.status, 0) << command << "\n" << ran.out;
  return ran.out;
}

struct Known {
  std::string name;
  std::string file;
  uint32_t line = 0;

  bool operator==(const Known&) const = default;
};
using KnownByAddress = std::map<uint32_t, Known>;

class MachO : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* tool : {MACH_O_CLANG, MACH_O_LINKER, MACH_O_DSYMUTIL, MACH_O_LLVM "llvm-nm",
                             MACH_O_LLVM "llvm-lipo", MACH_O_LLVM "llvm-symbolizer"}) {
      if (access(tool, X_OK) != 0)
        GTEST_SKIP() << "no " << tool << ": packages clang, lld and llvm";
    }
    std::ofstream(scratch_.file("app.cc")) << kSource;
  }

  // The program NAME, and its dSYM beside it; a library is loaded at 0, a program is not.
  std::string link(const std::string& architecture, const std::string& name, bool is_library,
                   const std::string& debug = "-g") {
    const bool is_arm64 = architecture == kArm64;
    const std::string target = is_arm64 ? "arm64-apple-ios15" : "x86_64-apple-macos12";
    const std::string path = scratch_.file(name);
    output_of(MACH_O_CLANG " --target=" + target + " " + debug + " -O1 -c " +
              scratch_.file("app.cc") + " -o " + path + ".o");
    output_of(MACH_O_LINKER " -arch " + architecture + " -platform_version " +
              (is_arm64 ? "ios" : "macos") + " 15.0 15.0 " + (is_library ? "-dylib" : "-e _entry") +
              " -o " + path + " " + path + ".o");
    output_of(MACH_O_DSYMUTIL " " + path);
    return path;
  }
  std::string dsym(const std::string& path) const {
    return path + ".dSYM/Contents/Resources/DWARF/" +
           std::filesystem::path(path).filename().string();
  }
  // Of its functions, as LLVM's tools see them. `debug`: where the lines are.
  KnownByAddress known(const std::string& path, uint64_t base, const std::string& debug) {
    KnownByAddress all;
    std::istringstream symbols(output_of(MACH_O_LLVM "llvm-nm " + path));
    uint64_t address = 0;
    std::string kind;
    std::string name;
    while (symbols >> std::hex >> address >> kind >> name) {
      if ((kind != "T" && kind != "t") || name == "__mh_execute_header") continue;
      std::ostringstream command;
      command << MACH_O_LLVM "llvm-symbolizer --obj=" << debug << " 0x" << std::hex << address;
      std::istringstream said(output_of(command.str()));
      Known& one = all[static_cast<uint32_t>(address - base)];
      std::getline(said, one.name);
      std::string place;
      std::getline(said, place);
      const size_t line = place.rfind(':', place.rfind(':') - 1);
      one.file = place.substr(0, line);
      one.line = static_cast<uint32_t>(std::atoi(place.c_str() + line + 1));
    }
    EXPECT_EQ(all.size(), 4u);
    return all;
  }
  static std::vector<uint8_t> uuid_of(const std::string& path) {
    std::istringstream said(
        output_of(MACH_O_LLVM "llvm-objdump --macho --private-headers " + path));
    std::string word;
    while (said >> word && word != "uuid") {
    }
    said >> word;
    std::erase(word, '-');
    std::vector<uint8_t> uuid;
    for (size_t at = 0; at + 1 < word.size(); at += 2) {
      uuid.push_back(static_cast<uint8_t>(std::stoi(word.substr(at, 2), nullptr, 16)));
    }
    EXPECT_EQ(uuid.size(), kUuidBytes) << path;
    return uuid;
  }
  // By collect-symbolizer, confined as always.
  Answer ask(const std::string& module_path, const std::vector<uint8_t>& uuid,
             const KnownByAddress& wanted, const std::vector<std::string>& directories = {}) {
    storage::ModuleInfo module;
    module.path = module_path;
    module.build_id = uuid;
    std::vector<uint32_t> addresses;
    for (const auto& [address, one] : wanted) addresses.push_back(address);
    auto answer = Symbolizer({SYMBOLIZER, directories, {"/"}})
                      .name(module, addresses, 100, 1u << 20, nullptr);
    EXPECT_TRUE(answer.ok()) << to_string(answer.error());
    return answer.ok() ? std::move(*answer) : Answer();
  }
  static KnownByAddress of(const Answer& answer) {
    KnownByAddress all;
    for (const NamedAddress& one : answer.names) all[one.address] = {one.name, one.file, one.line};
    return all;
  }

  Scratch scratch_;
};

// What an app of iOS is: a program at 0x100000000, whose DWARF stays outside.
TEST_F(MachO, NamesAndLinesOfAProgramByItsDsym) {
  const std::string app = link(kArm64, "app", false);
  const KnownByAddress expected = known(app, 0x1'0000'0000, dsym(app));
  const Answer answer =
      ask("/private/var/containers/app.app/app", uuid_of(app), expected, {scratch_.path()});
  EXPECT_EQ(answer.problem, "");
  EXPECT_EQ(answer.source, dsym(app));
  EXPECT_EQ(of(answer), expected);
}

TEST_F(MachO, DwarfOfVersion5) {
  const std::string app = link(kArm64, "app", false, "-gdwarf-5");
  const KnownByAddress expected = known(app, 0x1'0000'0000, dsym(app));
  EXPECT_EQ(of(ask("/app", uuid_of(app), expected, {scratch_.path()})), expected);
}

// The folder that is named is the bundle itself, or an archive of Xcode.
TEST_F(MachO, WhereADsymIsLookedFor) {
  const std::string app = link(kArm64, "app", false);
  const KnownByAddress expected = known(app, 0x1'0000'0000, dsym(app));
  EXPECT_EQ(of(ask("/elsewhere", uuid_of(app), expected, {app + ".dSYM"})), expected);
  std::filesystem::create_directories(scratch_.file("App.xcarchive/dSYMs"));
  std::filesystem::rename(app + ".dSYM", scratch_.file("App.xcarchive/dSYMs/other.app.dSYM"));
  EXPECT_EQ(of(ask("/elsewhere", uuid_of(app), expected, {scratch_.file("App.xcarchive")})),
            expected);
}

// An unstripped program has names and no lines; so have its functions.
TEST_F(MachO, FileWithoutDwarfHasNamesAlone) {
  const std::string library = link(kX86, "libapp.dylib", true);
  const std::vector<uint8_t> uuid = uuid_of(library);
  KnownByAddress expected = known(library, 0, dsym(library));
  std::filesystem::remove_all(library + ".dSYM");
  for (auto& [address, one] : expected) {
    one.file.clear();
    one.line = 0;
  }
  const Answer answer = ask(library, uuid, expected);
  EXPECT_EQ(answer.source, library);
  EXPECT_EQ(of(answer), expected);
  EXPECT_EQ(of(ask("/elsewhere/libapp.dylib", uuid, expected, {scratch_.path()})), expected);
}

TEST_F(MachO, AnotherBuildIsNotBelieved) {
  const std::string library = link(kArm64, "libapp.dylib", true);
  std::vector<uint8_t> uuid = uuid_of(library);
  const KnownByAddress wanted = known(library, 0, dsym(library));
  uuid.back() ^= 1;
  const Answer answer = ask(library, uuid, wanted, {scratch_.path()});
  EXPECT_EQ(answer.problem, kNoFile);
  EXPECT_TRUE(answer.names.empty());
}

// Of a file with several architectures, the one that ran.
TEST_F(MachO, EachArchitectureOfAUniversalFile) {
  const std::string arm64 = link(kArm64, "arm64.dylib", true);
  const std::string x86 = link(kX86, "x86.dylib", true);
  std::filesystem::create_directory(scratch_.file("both"));
  const std::string both = scratch_.file("both/lib.dylib");
  output_of(MACH_O_LLVM "llvm-lipo -create " + dsym(arm64) + " " + dsym(x86) + " -output " + both);
  for (const std::string& one : {arm64, x86}) {
    const KnownByAddress expected = known(one, 0, dsym(one));
    const Answer answer = ask(both, uuid_of(one), expected);
    EXPECT_EQ(answer.source, both);
    EXPECT_EQ(of(answer), expected);
  }
}

class DamagedMachO : public MachO {
 protected:
  void SetUp() override {
    MachO::SetUp();
    if (IsSkipped()) return;
    path_ = link(kArm64, "app", false);
    uuid_ = uuid_of(path_);
    std::ifstream file(dsym(path_), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    wanted_ = known(path_, 0x1'0000'0000, dsym(path_));
    std::filesystem::remove_all(path_ + ".dSYM");
  }
  // In this process, where a sanitizer sees what is read.
  std::vector<std::string> names_of(const std::vector<uint8_t>& bytes) {
    LookupRequest request;
    request.module_path = scratch_.write("damaged", bytes);
    request.build_id = uuid_;
    request.roots = {"/"};
    request.most_names = 100;
    request.most_name_bytes = 1u << 20;
    for (const auto& [address, one] : wanted_) request.addresses.push_back(address);
    std::vector<NamedAddress> names;
    const Status looked =
        look_up(request, open_module_files(request), "", [&](FrameKind kind, Bytes body) {
          return kind == FrameKind::kNames ? decode_names(body, names) : Status();
        });
    EXPECT_TRUE(looked.ok());
    std::vector<std::string> all;
    for (const NamedAddress& one : names) all.push_back(one.name);
    return all;
  }
  std::vector<std::string> all_names() const {
    std::vector<std::string> all;
    for (const auto& [address, one] : wanted_) all.push_back(one.name);
    return all;
  }
  // Where the first load command of a kind is.
  size_t command(uint32_t kind) const {
    size_t at = sizeof(MachHeader);
    while (at + sizeof(LoadCommand) <= bytes_.size()) {
      const auto found = load_le<LoadCommand>(bytes_.data() + at);
      if (found.command == kind) return at;
      at += found.bytes;
    }
    ADD_FAILURE() << "no load command " << kind;
    return 0;
  }

  std::string path_;
  std::vector<uint8_t> uuid_;
  std::vector<uint8_t> bytes_;
  KnownByAddress wanted_;
};

TEST_F(DamagedMachO, CutAnywhere) {
  EXPECT_EQ(names_of(bytes_), all_names());
  for (size_t end = 0; end < bytes_.size(); end += end < 2048 ? 1 : 97) {
    const auto names = names_of({bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(end)});
    EXPECT_TRUE(names.empty() || names == all_names()) << end;
  }
}

TEST_F(DamagedMachO, FieldsThatLie) {
  const size_t symtab = command(kCommandSymtab);
  const size_t segment = command(kCommandSegment64);
  const struct {
    const char* what;
    size_t at;
    bool moves_names = false;  // to other bytes of the file, which nothing tells from names
  } fields[] = {
      {"number of load commands", offsetof(MachHeader, commands)},
      {"bytes of load commands", offsetof(MachHeader, command_bytes)},
      {"bytes of a command", symtab + offsetof(LoadCommand, bytes)},
      {"place of symbols", symtab + offsetof(SymtabCommand, symbols_offset)},
      {"number of symbols", symtab + offsetof(SymtabCommand, symbols)},
      {"place of names", symtab + offsetof(SymtabCommand, strings_offset), true},
      {"bytes of names", symtab + offsetof(SymtabCommand, strings_bytes)},
      {"number of sections", segment + offsetof(SegmentCommand, sections)},
      {"size of a segment", segment + offsetof(SegmentCommand, memory_bytes)},
  };
  for (const auto& field : fields) {
    for (const uint32_t lie : {0u, 1u, 0x7fff'ffffu, 0xffff'ffffu}) {
      std::vector<uint8_t> lying = bytes_;
      store_le(lying.data() + field.at, lie);
      for (const std::string& name : names_of(lying)) {
        if (field.moves_names) continue;
        EXPECT_THAT(all_names(), testing::Contains(name)) << field.what << " " << lie;
      }
    }
  }
}

// Java's classes begin with the same four bytes as universal files.
TEST_F(DamagedMachO, ClassOfJavaIsNone) {
  EXPECT_TRUE(names_of({0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 0x34, 0, 0x10}).empty());
}

}  // namespace
}  // namespace collect::symbolize::test
