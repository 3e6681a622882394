// Files that are packed with gzip, whole, cut off and damaged; empty files and foreign ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/report/report.h"
#include "formats/dial9/writer.h"
#include "storage/read/gzip_file.h"

namespace collect::ctl {
namespace {

using exports::Target;

namespace fs = std::filesystem;
using nlohmann::json;
using ByteVector = std::vector<uint8_t>;

// One gzip member.
ByteVector gzip_of(Bytes bytes) {
  z_stream zlib{};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ByteVector out(deflateBound(&zlib, static_cast<uLong>(bytes.size())));
  zlib.next_in = const_cast<uint8_t*>(bytes.data());
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = out.data();
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

class PackedFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "packed_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string put(const std::string& name, const ByteVector& bytes) {
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return (directory_ / name).string();
  }
  int run_convert(const std::string& input, Target to, const fs::path& output) {
    ConvertOptions options;
    options.inputs = {input};
    options.to = to;
    options.output = output.string();
    options.json = true;
    clear();
    return convert(options, out_, err_);
  }
  json run_inspect(const std::string& path, int code) {
    clear();
    EXPECT_EQ(inspect({.path = path, .json = true}, out_, err_), code) << path << err_.str();
    return json::parse(out_.str());
  }
  void clear() {
    out_.str("");
    err_.str("");
  }
  void expect_error(const std::string& why, const char* command) {
    EXPECT_NE(err_.str().find(why), std::string::npos) << command << ": " << err_.str();
  }
  // What unpacks is read, and the rest is said, by every command.
  void expect_read_in_part(const ByteVector& bytes, const std::string& why, uint64_t events);

  fs::path directory_;
  std::ostringstream out_, err_;
};

// Four events of noise.
ByteVector noise_stream() {
  dial9::Encoder out;
  const auto type = *out.define({0, "A", true, {{"v", dial9::FieldType::kBytes}}});
  std::mt19937 random(1);
  ByteVector noise(300'000);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  for (uint64_t i = 0; i < 4; ++i) {
    out.begin_event(type, i);
    out.put_bytes(noise);
    EXPECT_TRUE(out.end_event());
  }
  return out.take();
}

void PackedFiles::expect_read_in_part(const ByteVector& bytes, const std::string& why,
                                      uint64_t events) {
  SCOPED_TRACE(why);
  const std::string path = put("bad.bin.gz", bytes);
  clear();
  DumpOptions dumping;
  dumping.paths = {path};
  dumping.json = true;
  EXPECT_EQ(dump(dumping, out_, err_), 1);
  expect_error(why, "dump");
  clear();
  EXPECT_EQ(verify({.path = path, .json = true}, out_, err_), 1);
  EXPECT_EQ(json::parse(out_.str())["ok"], false);
  EXPECT_NE(out_.str().find(why), std::string::npos) << out_.str();
  clear();
  RecoverOptions recovering;
  recovering.path = path;
  recovering.output = (directory_ / "whole.bin").string();
  recovering.force = true;
  EXPECT_EQ(recover(recovering, out_, err_), 1);
  expect_error(why, "recover");
  EXPECT_EQ(run_inspect(recovering.output, 0)["events"], events);
  EXPECT_EQ(run_convert(path, Target::kDial9, directory_ / "again.bin"), 1);
  expect_error(why, "convert");
  EXPECT_EQ(run_inspect((directory_ / "again.bin").string(), 0)["events"], events);
  fs::remove_all(directory_ / "again.bin");
  EXPECT_EQ(run_convert(path, Target::kAtf, directory_ / "atf"), 1);
  const json report = json::parse(out_.str());
  const std::string session = report["written"][0]["path"];
  const json manifest = json::parse(std::ifstream(session + "/manifest.json"));
  EXPECT_EQ(manifest["state"], "recovered");
  EXPECT_EQ(manifest["input_missing"], report["missing"]);
  EXPECT_NE(manifest["input_missing"].dump().find(why), std::string::npos) << manifest;
  fs::remove_all(directory_ / "atf");
}

TEST_F(PackedFiles, GzipWithSeveralMembersIsOneStream) {
  const ByteVector stream = noise_stream();
  ByteVector packed = gzip_of(stream);
  const ByteVector member = packed;
  packed.insert(packed.end(), member.begin(), member.end());
  packed.resize(packed.size() + 512);  // as a block copy pads
  const json inspected = run_inspect(put("two.bin.gz", packed), 0);
  EXPECT_EQ(inspected["format"], "dial9");
  EXPECT_EQ(inspected["sub_streams"], 2);
  EXPECT_EQ(inspected["events"], 8);
  EXPECT_EQ(inspected["bytes"], 2 * stream.size());
}

TEST_F(PackedFiles, RejectsGzipOfWhichNothingUnpacks) {
  const ByteVector member = gzip_of(noise_stream());
  for (const size_t size : {size_t{11}, size_t{2}}) {
    const std::string path =
        put("bad.bin.gz", {member.begin(), member.begin() + static_cast<ptrdiff_t>(size)});
    clear();
    EXPECT_EQ(verify({.path = path}, out_, err_), 2);
    EXPECT_NE(err_.str().find("the gzip data ends early, at offset " + std::to_string(size)),
              std::string::npos)
        << err_.str();
    EXPECT_EQ(run_convert(path, Target::kAtf, directory_ / "atf"), 2);
  }
}

TEST_F(PackedFiles, ReadsWhatUnpacksOfADamagedGzip) {
  const ByteVector member = gzip_of(noise_stream());
  const auto cut_at = [&](size_t size, uint64_t events) {
    expect_read_in_part({member.begin(), member.begin() + static_cast<ptrdiff_t>(size)},
                        "the gzip data ends early, at offset " + std::to_string(size), events);
  };
  cut_at(member.size() - 1, 4);  // of the length behind the data
  // Noise does not pack, so that the offset says which events are there.
  cut_at(member.size() / 2, 1);
  cut_at(member.size() * 7 / 8, 3);
  ByteVector wrong = member;
  wrong[wrong.size() - 6] ^= 1;  // of the checksum
  expect_read_in_part(wrong, "the gzip data is damaged at offset ", 4);
  wrong = member;
  wrong.push_back('x');
  expect_read_in_part(wrong, "is no gzip", 4);
}

TEST_F(PackedFiles, EmptyFileAndAForeignOneAreCalledSo) {
  for (const auto& [name, content, why] :
       {std::tuple<std::string, std::string, std::string>{"empty.bin", "", ": empty"},
        {"some.txt", "hello, this is a text and no trace",
         ": not a capture: neither ATF, RTC, WTF, dial9, Perfetto, Chrome JSON, speedscope nor "
         "folded stacks"}}) {
    const std::string path = put(name, {content.begin(), content.end()});
    const auto says = [&, expected = path + why](int code) {
      EXPECT_EQ(code, 2);
      EXPECT_NE(err_.str().find(expected), std::string::npos) << err_.str();
      clear();
    };
    clear();
    DumpOptions dumping;
    dumping.paths = {path};
    says(dump(dumping, out_, err_));
    says(verify({.path = path}, out_, err_));
    ReportOptions reporting;
    reporting.path = path;
    says(report(reporting, out_, err_));
    RecoverOptions recovering;
    recovering.path = path;
    recovering.output = path + ".out";
    says(recover(recovering, out_, err_));
    ConvertOptions converting;
    converting.inputs = {path};
    converting.output = path + ".rtc";
    for (const Target to : {Target::kAtf, Target::kRtc, Target::kDial9}) {
      converting.to = to;
      says(convert(converting, out_, err_));
    }
    EXPECT_EQ(inspect({.path = path}, out_, err_), 1);
    EXPECT_NE(out_.str().find(path + why), std::string::npos) << out_.str();
  }
}

TEST_F(PackedFiles, GzipFileThatHoldsTooMuchIsRefused) {
  const ByteVector zeros(4'000'000);
  const std::string path = put("bomb.gz", gzip_of(zeros));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const auto refused = read::inflate_gzip(fd, path, zeros.size() - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kLimit);
  EXPECT_NE(refused.error().message.find("more than 3999999 bytes"), std::string::npos);
  auto fits = read::inflate_gzip(fd, path, zeros.size());
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ(fits->file.bytes()->bytes().size(), 4'000'000u);
  ::close(fd);
}

}  // namespace
}  // namespace collect::ctl
