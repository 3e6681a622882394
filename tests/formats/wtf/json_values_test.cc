// Values of JSON events: the last that fits its argument, and the first that does not.
#include <gtest/gtest.h>

#include "formats/wtf/json/json.h"
#include "formats/wtf/text.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

struct ReadEvents {
  std::vector<std::string> lines;
  bool all_fit = true;
};

// Events of a type "t" with these arguments, as wire id 2.
ReadEvents events_of(const std::string& arguments, const std::string& events) {
  const std::string text =
      R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data","parts":[)"
      R"({"type":"json_event_buffer","events":[{"wireId":1,"time":0,"args":{"wireId":2,)"
      R"("eventClass":0,"flags":0,"name":"t","args":")" +
      arguments + "\"}}," + events + "]}]}]}";
  VectorSink binary;
  Findings findings, reading;
  EXPECT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok());
  return {testing::lines_of(binary.bytes(), reading), !findings.has(Rule::kJsonValue)};
}

bool value_fits(const std::string& argument, const std::string& value) {
  const ReadEvents read =
      events_of(argument + " v", R"({"wireId":2,"time":1,"args":[)" + value + "]}");
  EXPECT_EQ(read.lines.size(), read.all_fit ? 1u : 0u) << argument << " " << value;
  return read.all_fit;
}

TEST(JsonValues, NumbersFitTheirTypes) {
  struct Range {
    const char* type;
    int64_t least, greatest;
  };
  for (const Range& range : {Range{"int8", -128, 127},
                             {"uint8", 0, 255},
                             {"int16", -32768, 32767},
                             {"uint16", 0, 65535},
                             {"int32", -2147483648, 2147483647},
                             {"uint32", 0, 4294967295},
                             {"flowId", 0, 4294967295},
                             {"time32", 0, 4294967295}}) {
    const std::string type = range.type;
    EXPECT_TRUE(value_fits(type, std::to_string(range.least))) << type;
    EXPECT_TRUE(value_fits(type, std::to_string(range.greatest))) << type;
    EXPECT_FALSE(value_fits(type, std::to_string(range.least - 1))) << type;
    EXPECT_FALSE(value_fits(type, std::to_string(range.greatest + 1))) << type;
    EXPECT_FALSE(value_fits(type, "\"1\"")) << type;
    EXPECT_FALSE(value_fits(type, "1.5")) << type;
    EXPECT_FALSE(value_fits(type, "true")) << type;
  }
}

// Too large for a float is no value; too small for one is 0.
TEST(JsonValues, FloatsHaveTheirRange) {
  for (const char* number : {"3.4e38", "-3.4e38", "1e-60", "1e-400", "0"}) {
    EXPECT_TRUE(value_fits("float32", number)) << number;
  }
  for (const char* number : {"1e39", "-1e39", "1e400"}) {
    EXPECT_FALSE(value_fits("float32", number)) << number;
  }
}

// The table's strings are needed before the events, and its mistakes are reported once.
TEST(JsonValues, MistakeInAStringTableIsOneFinding) {
  const std::string text =
      R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data","parts":[)"
      R"({"type":"string_table","value":["a",7,"b\u0000c"]},)"
      R"({"type":"json_event_buffer","events":[]}]}]})";
  VectorSink binary;
  Findings findings;
  ASSERT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok());
  EXPECT_EQ(findings.list().size(), 2u) << "an entry that is no string, one with a NUL";
}

TEST(JsonValues, NumbersStandForThemselves) {
  const ReadEvents read = events_of("int8 a, int16 b, int32 c, uint32 d, int16[] e",
                                    R"({"wireId":2,"time":4294967295,"args":)"
                                    R"([-128,-32768,-2147483648,4294967295,[-32768,32767]]})");
  EXPECT_TRUE(read.all_fit);
  EXPECT_EQ(read.lines, std::vector<std::string>{
                            " | t | 4294967295 | a=-128 b=-32768 c=-2147483648 d=4294967295 "
                            "e=[-32768 32767 ]"});
}

TEST(JsonValues, BoolsTextsAndCharactersFitTheirTypes) {
  const std::tuple<const char*, const char*, bool> cases[] = {
      {"bool", "true", true},
      {"bool", "false", true},
      {"bool", "1", false},
      {"bool", "null", false},
      {"float32", "\"NaN\"", true},
      {"float32", "\"-Infinity\"", true},
      {"float32", "\"nan\"", false},
      {"float32", "null", false},
      {"char", "\"a\"", true},
      {"char", "\"\"", false},
      {"char", "\"ab\"", false},
      {"char", "97", false},
      {"wchar", R"("\uffff")", true},
      {"wchar", R"("\ud800\udc00")", false},
      {"char[]", R"("\u00ff")", true},
      {"char[]", R"("\u0100")", false},
      {"uint8[]", "[255]", true},
      {"uint8[]", "[256]", false},
      {"uint8[]", "{}", false},
      {"uint8[]", "7", false},
      {"ascii", R"({"ordinal":4294967295})", true},
      {"ascii", R"({"ordinal":4294967296})", false},
      {"ascii", R"({"ordinal":0,"ordinal":0})", false},
      {"ascii", "{}", false},
      {"ascii", R"({"value":1})", false},
      {"any", R"({"value":1})", true},
      {"any", R"({"value":1,"ordinal":0})", false},
      {"any", R"({"other":1})", false}};
  for (const auto& [type, value, fits] : cases) {
    EXPECT_EQ(value_fits(type, value), fits) << type << " " << value;
  }
}

// By name, the last argument first.
TEST(JsonValues, TakesTheMostArgumentsInAnyOrder) {
  constexpr size_t kArguments = 1024;
  std::string signature, values, line = " | t | 1 |";
  for (size_t i = 0; i < kArguments; ++i) {
    const std::string number = std::to_string(i);
    signature += (i == 0 ? "uint16 a" : ",uint16 a") + number;
    values.insert(0, "\"a" + number + "\":" + number + (i == 0 ? "" : ","));
    line += " a" + number + "=" + number;
  }
  const ReadEvents read = events_of(signature, R"({"wireId":2,"time":1,"args":{)" + values + "}}");
  EXPECT_TRUE(read.all_fit);
  EXPECT_EQ(read.lines, std::vector{line});
}

}  // namespace
}  // namespace collect::wtf
