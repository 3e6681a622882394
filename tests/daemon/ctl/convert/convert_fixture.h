// Conversions of files in a folder of the test, and what became of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/convert/convert_command.h"
#include "storage/convert/session_builder.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl::testing {

using Octets = std::vector<uint8_t>;
using Left = std::map<std::string, uint64_t>;

// What became of a file.
struct Made {
  storage::Manifest manifest;
  convert::ConvertLog log;
  uint64_t moved_times = 0, repeated_markers = 0, more_markers = 0;
  std::string directory;

  const Left& left_out() const { return log.left_out(); }
};

class ConvertTest : public OfflineTest {
 protected:
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  // The report is JSON, and in the place of what is there.
  int run(const std::vector<std::string>& inputs, exports::Target to, const std::string& output,
          ConvertOptions options = {}) {
    options.inputs = inputs;
    options.to = to;
    options.output = output;
    options.json = true;
    options.force = true;
    out_.str("");
    err_.str("");
    const int code = convert(options, out_, err_);
    // As words, too: an error is where the report would.
    if (out_.str().find("\"error\":{") != std::string::npos) {
      options.json = false;
      out_.str("");
      err_.str("");
      EXPECT_EQ(convert(options, out_, err_), code);
    }
    report_ = nlohmann::json::parse(out_.str(), nullptr, false);
    return code;
  }
  int run(const std::string& input, exports::Target to, const std::string& output,
          ConvertOptions options = {}) {
    return run(std::vector{input}, to, output, std::move(options));
  }
  std::string written(size_t i = 0) const { return report_["written"][i]["path"]; }
  // By way of a file of that format, back into a session.
  std::string by_way_of(exports::Target format, const std::string& session) {
    EXPECT_LE(run(session, format, at("between")), 1) << err_.str();
    EXPECT_LE(run(at("between"), exports::Target::kAtf, at("back")), 1) << err_.str();
    return written();
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static storage::Manifest manifest_of(const fs::path& session) {
    auto manifest = storage::manifest_from_json(text_of(session / "manifest.json"));
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? std::move(*manifest) : storage::Manifest();
  }
  // One of the converters into a session by itself.
  template <class Convert>
  Made made_of(const Octets& file, Convert into_session) {
    Made made;
    convert::SessionBuilder builder(storage::PosixFs(at("made")), atf::Version::kV2);
    const Status status = into_session(Bytes(file), builder, made.log);
    EXPECT_TRUE(status.ok()) << to_string(status.error());
    made.moved_times = builder.moved_times();
    made.repeated_markers = builder.repeated_markers();
    made.more_markers = builder.more_markers();
    const auto session = builder.finish(true, "test");
    EXPECT_TRUE(session.ok());
    made.directory = *session;
    made.manifest = manifest_of(*session);
    fs::remove_all(at("made"));
    return made;
  }

  nlohmann::json report_;
};

}  // namespace collect::ctl::testing
