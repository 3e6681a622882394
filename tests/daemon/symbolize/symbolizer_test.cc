// The real child with real and with poisonous files.
#include "daemon/symbolize/symbolizer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/symbolize/child_program.h"
#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/lookup.h"
#include "tests/daemon/symbolize/own_object.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/daemon/symbolize/scratch.h"
#include "tests/fakes/sanitized.h"

namespace collect::symbolize::test {

// Known to the test by its address and its name. External and out of line, so that it has both.
__attribute__((noinline)) int function_to_be_named(const std::vector<int>& numbers) {
  return numbers.empty() ? 1 : numbers[0];
}

// What a program takes for the address of an indirect function is a stub of the linker's. Hidden,
// so that it is, also with -fPIC.
static int answer_of_two() {
  return 2;
}
extern "C" int (*resolve_indirect_to_be_named())() {
  return answer_of_two;
}
extern "C" __attribute__((visibility("hidden"), ifunc("resolve_indirect_to_be_named"))) int
indirect_to_be_named();

namespace {

constexpr char kName[] =
    "collect::symbolize::test::function_to_be_named(std::vector<int, std::allocator<int> > const&)";
constexpr uint64_t kMany = 1000;

uint32_t known_address() {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(&function_to_be_named) -
                               own_object().bias);
}

storage::ModuleInfo module_at(const std::string& path) {
  storage::ModuleInfo module;
  module.path = path;
  module.build_id = ElfFile().build_id;
  return module;
}

Symbolizer symbolizer(const std::vector<std::string>& directories = {},
                      const std::vector<std::string>& roots = {"/"}) {
  return Symbolizer({SYMBOLIZER, directories, roots});
}

Answer named(const storage::ModuleInfo& module, const std::vector<uint32_t>& addresses,
             const Symbolizer& with = symbolizer(), uint64_t most = kMany) {
  auto answer = with.name(module, addresses, most, 1u << 20, nullptr);
  EXPECT_TRUE(answer.ok()) << to_string(answer.error());
  return answer.ok() ? std::move(*answer) : Answer();
}

TEST(SymbolizerTest, NamesAFunctionOfThisProgram) {
  ASSERT_FALSE(own_module().build_id.empty());
  const uint32_t address = known_address();
  const Answer answer = named(own_module(), {address, address + 1, 0xfffffff0});
  ASSERT_EQ(answer.names.size(), 2u) << answer.problem;
  EXPECT_EQ(answer.names[0].name, kName);
  EXPECT_EQ(answer.names[1].name, std::string(kName) + "+0x1");
  EXPECT_EQ(answer.source, own_path());
  EXPECT_EQ(answer.problem, "");
  EXPECT_TRUE(answer.is_whole);
}

TEST(SymbolizerTest, NamesAnIndirectFunctionByItsStub) {
  if (fakes::kSanitized) GTEST_SKIP() << "a resolver runs before the sanitizer does";
  const auto address = reinterpret_cast<uint64_t>(&indirect_to_be_named);
  const auto chosen = reinterpret_cast<uint64_t>(&answer_of_two);
  ASSERT_NE(address, chosen) << "the linker gives the address that the resolver gave";
  ASSERT_EQ(indirect_to_be_named(), 2);
  const auto relative = static_cast<uint32_t>(address - own_object().bias);
  const Answer answer = named(own_module(), {relative, relative + 2});
  ASSERT_EQ(answer.names.size(), 1u) << answer.problem;
  EXPECT_EQ(answer.names[0].address, relative);
  EXPECT_EQ(answer.names[0].name, "indirect_to_be_named");
  const auto resolver = static_cast<uint32_t>(
      reinterpret_cast<uint64_t>(&resolve_indirect_to_be_named) - own_object().bias);
  const Answer of_resolver = named(own_module(), {resolver});
  ASSERT_EQ(of_resolver.names.size(), 1u);
  EXPECT_EQ(of_resolver.names[0].name, "resolve_indirect_to_be_named");
}

// A process after chroot names a path that is none of this machine's; another one has named the
// same file.
TEST(SymbolizerTest, FileIsFoundWhereAnotherProcessNamedIt) {
  Scratch scratch;
  const std::string path = scratch.write("module", ElfFile().bytes());
  SymbolizerOptions options{SYMBOLIZER, {}, {scratch.path()}};
  options.known_files = std::make_shared<KnownFiles>();
  const Symbolizer with_hints(options);
  const storage::ModuleInfo inside = module_at("/inside/of/a/jail");
  EXPECT_EQ(named(inside, {0x1000}, with_hints).source, "");
  storage::ModuleInfo other = module_at("/etc/passwd");
  options.known_files->add({module_at(path), other});
  other.build_id = {1, 2, 3};
  other.path = "/somewhere/else";
  options.known_files->add({other});
  const Answer answer = named(inside, {0x1000}, with_hints);
  EXPECT_EQ(answer.source, path);
  const auto found = with_hints.find(inside, {"*"}, std::chrono::seconds(60), nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source, path);
  // symbol_roots hold for hints, too.
  options.roots = {"/usr/share"};
  EXPECT_EQ(named(inside, {0x1000}, Symbolizer(options)).source, "");
}

TEST(SymbolizerTest, KnownFilesAreBounded) {
  KnownFiles files;
  storage::ModuleInfo module;
  module.build_id = {1};
  for (size_t n = 0; n <= kMaxPathsOfFile; ++n) {
    module.path = "/p" + std::to_string(n);
    files.add({module, module});
  }
  module.path = "/p2";
  EXPECT_EQ(files.other_paths(module), (std::vector<std::string>{"/p4", "/p3", "/p1"}));
  for (size_t n = 0; n < kMaxKnownFiles; ++n) {
    module.build_id = {2, static_cast<uint8_t>(n), static_cast<uint8_t>(n >> 8)};
    files.add({module});
  }
  module.path = "/other";
  EXPECT_EQ(files.other_paths(module), std::vector<std::string>{"/p2"});
  module.build_id = {1};
  EXPECT_TRUE(files.other_paths(module).empty()) << "the oldest goes";
  module.build_id = {};
  module.path = "relative";
  files.add({module});
  module.path = "/x";
  EXPECT_TRUE(files.other_paths(module).empty());
}

TEST(SymbolizerTest, FindsFunctionsByPattern) {
  const auto answer = symbolizer().find(own_module(), {"*::function_to_be_named", "no_such_*"},
                                        std::chrono::seconds(60), nullptr);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->functions, std::vector<uint32_t>{known_address()});
  EXPECT_EQ(answer->matched, (std::vector<bool>{true, false}));
}

TEST(SymbolizerTest, FindsFilesByBuildIdAndByName) {
  const Scratch scratch;
  storage::ModuleInfo elsewhere = own_module();
  elsewhere.path = "/data/app/lib/libapp.so";
  EXPECT_TRUE(named(elsewhere, {known_address()}, symbolizer({scratch.path()})).names.empty());
  std::filesystem::create_symlink(own_path(), scratch.file("libapp.so"));
  EXPECT_EQ(named(elsewhere, {known_address()}, symbolizer({scratch.path()})).names.size(), 1u);
  // One that was cut may end in another file's name.
  elsewhere.path = "/" + std::string(4'095 - 11, 'x') + "/libapp.so";
  ASSERT_EQ(elsewhere.path.size(), kMaxPathBytes - 1);
  EXPECT_EQ(named(elsewhere, {known_address()}, symbolizer({scratch.path()})).names.size(), 1u);
  elsewhere.path.insert(1, "x");
  EXPECT_TRUE(named(elsewhere, {known_address()}, symbolizer({scratch.path()})).names.empty());
}

TEST(SymbolizerTest, WithoutABuildIdTheSizeDecides) {
  const Scratch scratch;
  ElfFile file;
  file.build_id.clear();
  file.symbols = {{0x1000, "f"}};
  file.loaded = {{0x1000, 0x5000}};
  storage::ModuleInfo module = module_at(scratch.write("app.so", file.bytes()));
  module.build_id.clear();
  EXPECT_EQ(named(module, {0x1000}).problem, kNoFileOfThisSize);
  module.size = 0x5000;
  const Answer answer = named(module, {0x1000});
  EXPECT_EQ(answer.names.size(), 1u);
  EXPECT_EQ(answer.problem, "no build id: matched by path and image size");
}

// A request comes as the pipe has it.
TEST(SymbolizerTest, TakesARequestInPiecesAndRejectsAPart) {
  const Scratch scratch;
  ElfFile file;
  file.symbols = {{0x1000, "f"}};
  const auto module = module_at(scratch.write("app.so", file.bytes()));
  const auto through = [&](const std::string& filter) {
    const std::string program = scratch.file("program");
    std::ofstream(program) << "#!/bin/sh\n" << filter << " | " << SYMBOLIZER << "\n";
    EXPECT_EQ(::chmod(program.c_str(), 0700), 0);
    return named(module, {0x1000}, Symbolizer({program, {}, {"/"}}));
  };
  const Answer whole = through("dd bs=1 2>/dev/null");
  EXPECT_TRUE(whole.is_whole) << whole.problem;
  EXPECT_EQ(whole.names.size(), 1u);
  EXPECT_EQ(through("head -c 20").problem, "ended with exit code 3");
  EXPECT_EQ(through("tr Q S").problem, "ended with exit code 3") << "an answer is no request";
}

// The reader has no more room, or has ended.
TEST(SymbolizerTest, EndsWithoutAReaderForItsAnswer) {
  const Scratch scratch;
  const std::string program = scratch.file("program");
  const std::string fifo = scratch.file("fifo");
  std::ofstream(program) << "#!/bin/sh\n" << SYMBOLIZER << " >/dev/full\nexit $?\n";
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  const Symbolizer through({program, {}, {"/"}});
  EXPECT_EQ(named(own_module(), {known_address()}, through).problem,
            "ended with exit code " + std::to_string(kExitNoReader));
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(program) << "#!/bin/sh\nexec 4<>" << fifo << " 5>" << fifo << " 4<&-\n"
                         << SYMBOLIZER << " >&5\nexit $?\n";
  EXPECT_EQ(named(own_module(), {known_address()}, through).problem,
            "ended with exit code " + std::to_string(kExitNoReader));
}

// A child that answers with these frames behind its source.
Answer answer_of(const Scratch& scratch, const std::vector<std::vector<uint8_t>>& frames,
                 uint64_t most_names, uint64_t most_bytes) {
  const std::string program = scratch.file("program");
  std::ofstream(program) << "#!/bin/sh\ncat " << scratch.file("answer") << "\n";
  EXPECT_EQ(::chmod(program.c_str(), 0700), 0);
  std::vector<uint8_t> whole = frame_bytes(FrameKind::kSource, encode_source({"file", "", ""}));
  for (const auto& frame : frames) whole.insert(whole.end(), frame.begin(), frame.end());
  scratch.write("answer", whole);
  auto answer = Symbolizer({program, {}, {"/"}})
                    .name(own_module(), {0x10, 0x20, 0x30}, most_names, most_bytes, nullptr);
  EXPECT_TRUE(answer.ok());
  return answer.ok() ? std::move(*answer) : Answer();
}

// An answer that a child which was taken over might give, taken as far as it was asked for.
TEST(SymbolizerTest, NamesThatWereNotAskedForEndTheAnswer) {
  const Scratch scratch;
  const auto answered = [&](const std::vector<NamedAddress>& names, uint64_t most_names,
                            uint64_t most_bytes) {
    std::vector<uint8_t> body;
    for (const NamedAddress& one : names) append_name(body, one.address, one.name);
    return answer_of(
        scratch,
        {frame_bytes(FrameKind::kNames, body), frame_bytes(FrameKind::kDone, encode_done({}))},
        most_names, most_bytes);
  };
  const NamedAddress one{0x10, "one"}, two{0x20, "two"}, other{0x11, "other"};
  constexpr char kRefused[] = "ended: it sent names that were not asked for";
  const Answer whole = answered({one, two}, 2, 6);
  EXPECT_TRUE(whole.is_whole) << whole.problem;
  EXPECT_EQ(whole.names.size(), 2u);
  const Answer too_many = answered({one, two}, 1, 6);
  EXPECT_EQ(too_many.problem, kRefused);
  EXPECT_EQ(too_many.names.size(), 1u);
  EXPECT_EQ(answered({one, two}, 2, 5).problem, kRefused);
  EXPECT_EQ(answered({two, one}, 2, 6).problem, kRefused);
  EXPECT_EQ(answered({one, one}, 2, 6).problem, kRefused);
  EXPECT_EQ(answered({other}, 2, 6).problem, kRefused);
}

TEST(SymbolizerTest, LinesThatWereNotAskedForCostNoNames) {
  const Scratch scratch;
  std::vector<uint8_t> names;
  append_name(names, 0x10, "one");
  append_name(names, 0x20, "two");
  const auto answered = [&](const std::vector<LineOfAddress>& lines) {
    std::vector<uint8_t> body;
    for (const LineOfAddress& line : lines) append_line(body, line.address, line.file, line.line);
    Answer answer =
        answer_of(scratch,
                  {frame_bytes(FrameKind::kNames, names), frame_bytes(FrameKind::kLines, body),
                   frame_bytes(FrameKind::kDone, encode_done({}))},
                  2, 20);
    EXPECT_EQ(answer.names.size(), 2u);
    return answer;
  };
  constexpr char kRefused[] = "ended: it sent lines that were not asked for";
  const Answer whole = answered({{0x20, 7, "two.c"}});
  EXPECT_TRUE(whole.is_whole) << whole.problem;
  EXPECT_EQ(whole.names.at(0).file, "");
  EXPECT_EQ(whole.names.at(1).file, "two.c");
  EXPECT_EQ(whole.names.at(1).line, 7u);
  EXPECT_EQ(answered({{0x20, 7, "two.c"}, {0x20, 8, "two.c"}}).problem, kRefused) << "twice";
  EXPECT_EQ(answered({{0x11, 7, "two.c"}}).problem, kRefused);
  EXPECT_EQ(answered({{0x30, 7, "two.c"}}).problem, kRefused);
  EXPECT_EQ(answered({{0x10, 7, ""}}).problem, kRefused);
  // Names and files together have a limit: six bytes are names.
  EXPECT_TRUE(answered({{0x10, 7, std::string(14, 'x')}}).is_whole);
  EXPECT_EQ(answered({{0x10, 7, std::string(15, 'x')}}).problem, kRefused);
}

// SYMBOLIZE.md "Limits": a request of 8 MiB, which the child takes.
TEST(SymbolizerTest, RequestHasALimit) {
  LookupRequest like;
  like.build_id = ElfFile().build_id;
  like.roots = {"/"};
  const size_t rest = kMaxRequestBytes - encode_request(like).size();
  std::string path(rest % 4 + 4, 'x');
  const std::vector<uint32_t> addresses((rest - path.size()) / 4, 1);
  EXPECT_EQ(named(module_at(path), addresses).problem, kNoFile);
  const auto beyond = symbolizer().name(module_at(path + "x"), addresses, 1, 1, nullptr);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.code(), Code::kLimit);
}

// The child takes no more either, from any sender.
TEST(SymbolizerTest, ChildRefusesARequestBeyondTheLimit) {
  LookupRequest request;
  const size_t rest = kMaxRequestBytes - encode_request(request).size();
  request.module_path = std::string(rest % 4, 'x');
  request.addresses.resize(rest / 4);
  const auto exit_code = [&] {
    const auto frame = frame_bytes(FrameKind::kRequest, encode_request(request));
    const auto ending =
        run_child({SYMBOLIZER}, frame, {std::chrono::milliseconds(60'000), 1u << 20, nullptr},
                  [](Bytes) { return Status(); });
    return ending.ok() ? ending->exit_code : -1;
  };
  ASSERT_EQ(encode_request(request).size(), kMaxRequestBytes);
  EXPECT_EQ(exit_code(), kExitDone);
  request.module_path += 'x';
  EXPECT_EQ(exit_code(), kExitBadRequest);
}

TEST(SymbolizerTest, FindsTheChildBesideTheProgram) {
  EXPECT_EQ(symbolizer_program(),
            std::filesystem::path(own_path()).parent_path().string() + "/collect-symbolizer");
}

// An agent that names a file learns nothing of it: not whether it is there, nor what it is.
TEST(SymbolizerTest, AllThatMayNotBeReadAnswersTheSame) {
  const Scratch scratch;
  ElfFile other;
  other.build_id[0] ^= 1;
  ElfFile mine;
  mine.symbols = {{0x1000, "f"}};
  ASSERT_EQ(::mkfifo(scratch.file("pipe").c_str(), 0600), 0);
  scratch.write("secret", mine.bytes());
  ASSERT_EQ(::chmod(scratch.file("secret").c_str(), 0), 0);
  ASSERT_EQ(::chown(scratch.file("secret").c_str(), ::geteuid() == 0 ? 65534 : ::geteuid(), -1), 0);
  const std::vector<std::string> paths = {
      scratch.file("missing"),
      scratch.file("pipe"),
      scratch.path(),
      scratch.file("secret"),
      scratch.write("other", other.bytes()),
      scratch.write("text", {'t', 'e', 'x', 't'}),
      "/dev/zero",
      "/proc/self/exe",
      "relative",
      std::string(5'000, 'x'),
  };
  for (const std::string& path : paths) {
    const Answer answer = named(module_at(path), {0x1000});
    EXPECT_EQ(answer.problem, kNoFile) << path;
    EXPECT_EQ(answer.source, "") << path;
    EXPECT_TRUE(answer.names.empty()) << path;
  }
  EXPECT_EQ(named(module_at(scratch.write("mine", mine.bytes())), {0x1000}).names.size(), 1u);
  const Answer outside =
      named(module_at(scratch.file("mine")), {0x1000}, symbolizer({}, {"/usr/lib"}));
  EXPECT_EQ(outside.problem, kNoFile);
}

TEST(SymbolizerTest, PoisonousNameCostsNoOtherName) {
  const Scratch scratch;
  ElfFile file;
  file.symbols = {{0x1000, "before"}, {0x2000, exponential_name(24)}, {0x3000, "behind"}};
  const Answer answer =
      named(module_at(scratch.write("x.so", file.bytes())), {0x1000, 0x2000, 0x3000});
  ASSERT_EQ(answer.names.size(), 3u) << answer.problem;
  EXPECT_EQ(answer.names[0].name, "before");
  EXPECT_EQ(answer.names[1].name.size(), kMaxSymbolNameBytes);
  EXPECT_EQ(answer.names[2].name, "behind");
}

// 4 KB on the disk that claim gigabytes.
TEST(SymbolizerTest, SparseFileIsBounded) {
  const Scratch scratch;
  for (const bool table : {true, false}) {
    ElfFile file;
    file.symbols = {{0x1000, "f"}};
    (table ? file.claimed_table_bytes : file.claimed_strings_bytes) = 3ull << 30;
    const std::string path = scratch.write("sparse.so", file.bytes());
    ASSERT_EQ(::truncate(path.c_str(), 4ll << 30), 0);
    const Answer answer = named(module_at(path), {0x1000});
    // A sanitizer's address space can't be limited.
    EXPECT_TRUE(answer.names.empty() || fakes::kSanitized);
  }
}

TEST(SymbolizerTest, EndlessSectionsAreBounded) {
  const Scratch scratch;
  ElfFile file;
  file.symbols = {{0x1000, "f"}};
  file.claimed_sections = 60'000'000;
  const std::string path = scratch.write("sections.so", file.bytes());
  ASSERT_EQ(::truncate(path.c_str(), 5ll << 30), 0);
  (void)named(module_at(path), {0x1000});
  file = ElfFile();
  file.cyclic_notes = true;
  (void)named(module_at(scratch.write("notes.so", file.bytes())), {0x1000});
}

// Names or none: the child reads them to the end.
TEST(SymbolizerTest, DamagedFilesGiveAnswers) {
  const Scratch scratch;
  const auto expect_answer = [&](const std::string& name, const std::vector<uint8_t>& bytes) {
    const Answer answer = named(module_at(scratch.write(name, bytes)), {0x1000, 0x2000});
    for (const char* end : {"crashed", "ended"}) {
      EXPECT_EQ(answer.problem.find(end), std::string::npos) << answer.problem;
    }
  };
  ElfFile file;
  file.symbols = {{0x1000, "f"}, {0x2000, "_ZN1a1bEv"}};
  const std::vector<uint8_t> whole = file.bytes();
  for (size_t bytes = 0; bytes < whole.size(); bytes += 13) {
    expect_answer("cut.so", {whole.begin(), whole.begin() + long(bytes)});
  }
  for (size_t at = 16; at < whole.size(); at += 7) {
    std::vector<uint8_t> flipped = whole;
    flipped[at] ^= 0xff;
    expect_answer("flip.so", flipped);
  }
}

TEST(SymbolizerTest, BoundsAreKept) {
  const Scratch scratch;
  ElfFile file;
  for (uint32_t i = 1; i <= 10; ++i) file.symbols.push_back({i * 16, "f" + std::to_string(i)});
  std::vector<uint32_t> addresses;
  for (uint32_t i = 1; i <= 10; ++i) addresses.push_back(i * 16);
  const Answer answer =
      named(module_at(scratch.write("x.so", file.bytes())), addresses, symbolizer(), 4);
  EXPECT_EQ(answer.names.size(), 4u);
  EXPECT_EQ(answer.left_out, 6u);
}

// A child that was taken over may say anything: these say what is no answer.
TEST(SymbolizerTest, OtherProgramsAreNoSymbolizers) {
  for (const char* program : {"/bin/cat", "/bin/true", "/bin/false", "/usr/bin/yes"}) {
    const auto answer =
        Symbolizer({program, {}, {"/"}}).name(own_module(), {known_address()}, 1, 100, nullptr);
    ASSERT_TRUE(answer.ok()) << program;
    EXPECT_FALSE(answer->is_whole) << program;
    EXPECT_NE(answer->problem, "") << program;
    EXPECT_TRUE(answer->names.empty()) << program;
  }
  const auto missing =
      Symbolizer({"/nowhere/at-all", {}, {"/"}}).name(own_module(), {1}, 1, 100, nullptr);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), Code::kNotFound);
}

}  // namespace
}  // namespace collect::symbolize::test
