// Files and lines, of this program's own file: by the compiler's word, and as objcopy makes it.
#include <gtest/gtest.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/lookup.h"
#include "daemon/symbolize/symbolizer.h"
#include "tests/daemon/symbolize/own_object.h"
#include "tests/daemon/symbolize/scratch.h"
#include "tests/formats/programs.h"

namespace collect::symbolize::test {

// External and out of line, so that they have addresses and lines of their own.
constexpr uint32_t kFirstLine = __LINE__ + 1;
__attribute__((noinline)) int first_of_its_file(int number) {
  return number + 1;
}
constexpr uint32_t kSecondLine = __LINE__ + 1;
__attribute__((noinline)) int second_of_its_file(int number) {
  return number * 3;
}

namespace {

constexpr char kThisFile[] = "tests/daemon/symbolize/lookup/source_lines_test.cc";

std::vector<uint32_t> known_addresses() {
  std::vector<uint32_t> addresses;
  for (auto* function : {&first_of_its_file, &second_of_its_file}) {
    addresses.push_back(
        static_cast<uint32_t>(reinterpret_cast<uint64_t>(function) - own_object().bias));
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

Answer answer_for(const storage::ModuleInfo& module,
                  const std::vector<std::string>& directories = {}) {
  auto answer = Symbolizer({SYMBOLIZER, directories, {"/"}})
                    .name(module, known_addresses(), 10, 1u << 20, nullptr);
  EXPECT_TRUE(answer.ok()) << to_string(answer.error());
  return answer.ok() ? std::move(*answer) : Answer();
}

void expect_lines(const Answer& answer) {
  EXPECT_EQ(answer.problem, "");
  ASSERT_EQ(answer.names.size(), 2u);
  for (const NamedAddress& named : answer.names) {
    EXPECT_TRUE(named.file.ends_with(kThisFile)) << named.file;
    const bool is_first = named.name.find("first_of_its_file") != std::string::npos;
    EXPECT_EQ(named.line, is_first ? kFirstLine : kSecondLine);
  }
}

// This program, with its debug information changed by objcopy.
std::string copied(const Scratch& scratch, const std::string& name, const std::string& options) {
  const auto ran =
      reference::run("objcopy " + options + " " + own_path() + " " + scratch.file(name) + " 2>&1");
  EXPECT_EQ(ran.status, 0) << ran.out;
  return scratch.file(name);
}

storage::ModuleInfo own_module_at(const std::string& path) {
  storage::ModuleInfo module = own_module();
  module.path = path;
  return module;
}

TEST(SourceLines, WhereAFunctionBegins) {
  expect_lines(answer_for(own_module()));
}

TEST(SourceLines, GivesOnlyNamesWithoutDebugInformation) {
  const Scratch scratch;
  const Answer answer = answer_for(own_module_at(copied(scratch, "plain", "--strip-debug")));
  EXPECT_EQ(answer.problem, "");
  ASSERT_EQ(answer.names.size(), 2u);
  for (const NamedAddress& named : answer.names) EXPECT_EQ(named.file, "");
}

TEST(SourceLines, ReadsASeparateDebugFile) {
  const Scratch scratch;
  const std::string stripped = copied(scratch, "stripped", "--strip-all");
  std::filesystem::create_directory(scratch.file("debug"));
  copied(scratch, "debug/stripped.debug", "--only-keep-debug");
  expect_lines(answer_for(own_module_at(stripped), {scratch.file("debug")}));
}

TEST(SourceLines, ReadsCompressedSections) {
  const Scratch scratch;
  expect_lines(
      answer_for(own_module_at(copied(scratch, "small", "--compress-debug-sections=zlib"))));
}

// Where a section's bytes stand in the file.
struct Range {
  size_t begin = 0;
  size_t bytes = 0;
};
Range section_of(const std::string& path, const std::string& wanted) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto section = [&](size_t number) {
    Elf64_Shdr one;
    std::memcpy(&one, bytes.data() + header.e_shoff + number * sizeof one, sizeof one);
    return one;
  };
  const size_t names = section(header.e_shstrndx).sh_offset;
  for (size_t number = 0; number < header.e_shnum; ++number) {
    const Elf64_Shdr one = section(number);
    if (wanted == bytes.data() + names + one.sh_name) return {one.sh_offset, one.sh_size};
  }
  ADD_FAILURE() << "no " << wanted << " in " << path;
  return {};
}

// For any line table: every name comes.
TEST(SourceLines, DamageCostsNoNames) {
  const Scratch scratch;
  const std::string path = copied(scratch, "damaged", "");
  constexpr size_t kPlaces = 12;  // of each section
  for (const char* name : {".debug_line", ".debug_info", ".debug_abbrev"}) {
    const Range section = section_of(path, name);
    ASSERT_GT(section.bytes, kPlaces);
    for (size_t place = 0; place < kPlaces; ++place) {
      const size_t at = section.begin + (place < 4 ? place * 4 : section.bytes / kPlaces * place);
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const auto put = [&](char byte) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put(byte);
        file.flush();
      };
      file.seekg(static_cast<std::streamoff>(at));
      const char before = static_cast<char>(file.get());
      put(static_cast<char>(~before));
      EXPECT_EQ(answer_for(own_module_at(path)).names.size(), 2u) << name << " at " << at;
      put(before);
    }
  }
  expect_lines(answer_for(own_module_at(path)));
}

// SYMBOLIZE.md "Limits": what does not fit is counted.
TEST(SourceLines, NamesAndFilesTogetherHaveALimit) {
  LookupRequest request;
  request.module_path = own_path();
  request.build_id = own_module().build_id;
  request.roots = {"/"};
  request.addresses = known_addresses();
  request.most_names = 10;
  const auto lines_within = [&request](uint64_t bytes, uint64_t& left_out) {
    request.most_name_bytes = bytes;
    std::vector<NamedAddress> names;
    std::vector<LineOfAddress> lines;
    const Status looked_up =
        look_up(request, open_module_files(request), "", [&](FrameKind kind, Bytes body) -> Status {
          if (kind == FrameKind::kNames) return decode_names(body, names);
          if (kind == FrameKind::kLines) return decode_lines(body, lines);
          if (kind == FrameKind::kDone) left_out = decode_done(body)->lines_left_out;
          return {};
        });
    EXPECT_TRUE(looked_up.ok());
    size_t total = 0;
    for (const NamedAddress& named : names) total += named.name.size();
    for (const LineOfAddress& line : lines) total += line.file.size();
    EXPECT_EQ(names.size(), 2u);
    EXPECT_LE(total, bytes);
    return std::pair(lines.size(), total);
  };
  uint64_t left_out = 0;
  const size_t all = lines_within(1u << 20, left_out).second;
  EXPECT_EQ(left_out, 0u);
  EXPECT_EQ(lines_within(all, left_out).first, 2u);
  EXPECT_EQ(left_out, 0u);
  EXPECT_EQ(lines_within(all - 1, left_out).first, 1u);
  EXPECT_EQ(left_out, 1u);
}

}  // namespace
}  // namespace collect::symbolize::test
