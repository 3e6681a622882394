// Streams of ours before decoders that were not written from this code; and streams of generators
// that were not before ours.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/dial9/recorded.h"
#include "tests/formats/dial9/reference_files.h"

namespace collect::dial9 {
namespace {

using nlohmann::json;
using testing::random_stream;
using testing::RandomStream;
namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    out += text;
  }
  return out;
}

json addresses(const std::vector<uint64_t>& stack) {
  json list = json::array();
  for (const uint64_t address : stack) list.push_back(std::to_string(address));
  return list;
}

json shown(const OwnedValue& value, bool element);

json shown_elements(const OwnedValue& value) {
  const auto& elements = std::get<std::vector<OwnedValue>>(value.content);
  json list = json::array();
  const size_t step = value.type == FieldType::kDynamicMap ? 2 : 1;
  for (size_t i = 0; i < elements.size(); i += step) {
    list.push_back(step == 1 ? shown(elements[i], true)
                             : json{shown(elements[i], true), shown(elements[i + 1], true)});
  }
  return list;
}

// What an independent decoder prints for a value that was written: read_dial9.py has the form.
json shown_content(const OwnedValue& value) {
  switch (value.type) {
    case FieldType::kI64:
      return std::to_string(std::get<int64_t>(value.content));
    case FieldType::kF64: {
      char text[19];
      std::snprintf(text, sizeof text, "f:%016llx",
                    static_cast<unsigned long long>(std::get<uint64_t>(value.content)));
      return text;
    }
    case FieldType::kBool:
      return std::get<uint64_t>(value.content) != 0;
    case FieldType::kString:
      return std::get<std::string>(value.content);
    case FieldType::kBytes:
      return hex(std::get<std::string>(value.content));
    case FieldType::kStackFrames:
      return addresses(std::get<std::vector<uint64_t>>(value.content));
    case FieldType::kPooledString: {
      const auto& pooled = std::get<PooledText>(value.content);
      return pooled.text ? *pooled.text : std::to_string(pooled.id);
    }
    case FieldType::kPooledStackFrames: {
      const auto& pooled = std::get<PooledStack>(value.content);
      return pooled.addresses ? addresses(*pooled.addresses) : json(std::to_string(pooled.id));
    }
    case FieldType::kStringMap: {
      json object = json::object();
      for (const auto& [key, text] : std::get<OwnedValue::Pairs>(value.content)) object[key] = text;
      return object;
    }
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      return shown_elements(value);
    default:
      return std::to_string(std::get<uint64_t>(value.content));
  }
}

json shown(const OwnedValue& value, bool element) {
  if (!value.present()) return nullptr;
  if (!element) return shown_content(value);
  const bool fixed = value.type == FieldType::kU8 || value.type == FieldType::kU16 ||
                     value.type == FieldType::kU32;
  return json{static_cast<int>(fixed ? FieldType::kVarint : value.type), shown_content(value)};
}

json shown(const OwnedEvent& event) {
  json values = json::array();
  for (const OwnedValue& value : event.values) values.push_back(shown(value, false));
  return {{"id", event.schema.type_id},
          {"name", event.schema.name},
          {"ts", event.timestamp_ns ? json(std::to_string(*event.timestamp_ns)) : json()},
          {"v", values}};
}

class WrittenFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
    folder_ = fs::path(::testing::TempDir()) / ("dial9_written_" + std::to_string(getpid()));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  static std::string dump(testing::PythonTool& decoder, const fs::path& path) {
    const auto [status, out] = decoder.run({path.string()});
    EXPECT_EQ(status, 0) << path << ": " << out.substr(out.size() < 300 ? 0 : out.size() - 300);
    return out;
  }

  void compare_as_written(testing::PythonTool& decoder);

  fs::path folder_;
  reference::PythonTools decoders_ =
      reference::python_tools(testing::independent_programs("read_dial9.py", "d9dump.py"));
};

void WrittenFiles::compare_as_written(testing::PythonTool& decoder) {
  size_t events = 0;
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    const RandomStream written = random_stream(seed, 3, 60);
    const fs::path path = folder_ / (std::to_string(seed) + ".bin");
    testing::write_file(path, written.bytes);
    const std::string lines = dump(decoder, path);
    EXPECT_EQ(testing::json_lines(written.bytes), lines) << seed;
    size_t next = 0;
    for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
      json line = json::parse(lines.substr(at, end - at), nullptr, false);
      ASSERT_FALSE(line.is_discarded()) << seed;
      if (line["k"] != "event") continue;
      line.erase("k");
      line.erase("end");
      ASSERT_LT(next, written.events.size()) << seed;
      ASSERT_EQ(line, shown(written.events[next])) << seed << " event " << next;
      ++next;
    }
    EXPECT_EQ(next, written.events.size()) << seed;
    events += next;
  }
  EXPECT_GT(events, 1000u);
}

TEST_F(WrittenFiles, AreReadByTheIndependentDecodersAsWritten) {
  for (testing::PythonTool& decoder : decoders_) compare_as_written(decoder);
}

TEST_F(WrittenFiles, RandomStreamsOfTheGeneratorsShowTheSameLines) {
  constexpr size_t kStreams = 60;
  for (const fs::path& program : testing::independent_programs("make_dial9.py", "d9gen.py")) {
    testing::PythonTool generator(program);
    const fs::path made = folder_ / program.stem();
    ASSERT_EQ(generator.run({"--random", std::to_string(kStreams), "7", made.string()}).status, 0);
    const auto streams = testing::files_with(made, ".bin");
    EXPECT_EQ(streams.size(), kStreams);
    for (const fs::path& path : streams) {
      const std::string lines = testing::json_lines(testing::file_bytes(path));
      for (testing::PythonTool& decoder : decoders_) EXPECT_EQ(lines, dump(decoder, path)) << path;
    }
  }
}

}  // namespace
}  // namespace collect::dial9
