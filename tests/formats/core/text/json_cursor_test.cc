#include "formats/core/text/json_cursor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace collect {
namespace {

TEST(JsonCursor, WalksADocument) {
  JsonCursor cursor(R"( {"a" : [1, -2.5e3, "x\u00e9\ud83d\ude00"], "b":{"c":null},"d":true} )",
                    100);
  std::string key, text;
  std::string_view number;
  ASSERT_TRUE(cursor.enter_object());
  ASSERT_TRUE(cursor.next_member(key));
  EXPECT_EQ(key, "a");
  ASSERT_TRUE(cursor.enter_array());
  ASSERT_TRUE(cursor.next_element());
  EXPECT_TRUE(cursor.number(number));
  EXPECT_EQ(json_integer(number), 1);
  ASSERT_TRUE(cursor.next_element());
  EXPECT_TRUE(cursor.number(number));
  EXPECT_EQ(json_double(number), -2500.0);
  ASSERT_TRUE(cursor.next_element());
  EXPECT_TRUE(cursor.string(text));
  EXPECT_EQ(text, "xé😀");
  EXPECT_FALSE(cursor.next_element());
  ASSERT_TRUE(cursor.next_member(key));
  std::string_view raw;
  EXPECT_TRUE(cursor.raw(raw));
  EXPECT_EQ(raw, R"({"c":null})");
  ASSERT_TRUE(cursor.next_member(key));
  bool flag = false;
  EXPECT_TRUE(cursor.boolean(flag));
  EXPECT_TRUE(flag);
  EXPECT_FALSE(cursor.next_member(key));
  EXPECT_TRUE(cursor.at_end());
  EXPECT_TRUE(cursor.ok());
}

TEST(JsonCursor, RefusesWhatIsNoJson) {
  for (const char* bad :
       {"",         "{",        "[1,]",      "[1 2]",       "{\"a\":}",    "{\"a\" 1}",
        "{a:1}",    "01",       "1.",        "-",           "1e",          "tru",
        "nul",      "\"\\x\"",  "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"",
        "\"\x01\"", "\"\xff\"", "\"a",       "[}",          "{]",          "[1]]",
        "1 1",      "+1",       ".5",        "NaN",         "{\"a\":1,}",  "[,1]"}) {
    EXPECT_FALSE(is_json(bad)) << bad;
  }
  for (const char* good : {"0", "-0", " [ ] ", "{}", "[[],{}]", "1e+5", "\"\\/\"", "false"}) {
    EXPECT_TRUE(is_json(good)) << good;
  }
}

TEST(JsonCursor, DoesNotPassInvalidValues) {
  for (const char* bad : {"tru", "fals", "nul", "\"a", "\"\\x\"", "-", "1.", "[1", "[1 2]", "{",
                          "{\"a\" 1}", "{\"a\":tru}", "[nul]", "[-]", "[\"a]", "{\"a", ""}) {
    std::string_view raw = "as it was";
    EXPECT_FALSE(JsonCursor(bad).skip()) << bad;
    EXPECT_FALSE(JsonCursor(bad).raw(raw)) << bad;
    EXPECT_EQ(raw, "as it was") << bad;
  }
  EXPECT_FALSE(JsonCursor("[[1]]", 0, 1).skip());
  EXPECT_FALSE(JsonCursor("[{}]", 0, 1).skip());
  EXPECT_TRUE(JsonCursor("[{}]", 0, 2).skip());
}

// Behind a key that has no colon there is no value to be read.
TEST(JsonCursor, MemberIsAKeyAndAColon) {
  for (const char* bad : {"{\"a\" 1}", "{\"a\"", "{\"a\",", "{a:1}", "{1:1}", "{,", "{"}) {
    JsonCursor cursor(bad);
    std::string key;
    ASSERT_TRUE(cursor.enter_object());
    EXPECT_FALSE(cursor.next_member(key)) << bad;
    EXPECT_FALSE(cursor.ok()) << bad;
    EXPECT_FALSE(cursor.at_end()) << bad;
  }
}

TEST(JsonCursor, SaysWhatIsWrongAndWhere) {
  for (const auto& [text, why, offset] :
       {std::tuple(R"("\u00e9)", "the text ends within a string", 107u),
        {R"("\u00e)", "an escape is cut off", 103u},
        {R"("\u00eg")", "an escape is not hexadecimal", 103u},
        {R"("\)", "the text ends within a string", 102u},
        {R"({"a" 1})", "a colon is expected", 105u},
        {"[1", "the text ends within a container", 102u},
        {"[1 2]", "a comma is expected", 103u}}) {
    JsonCursor cursor(text, 100);
    EXPECT_FALSE(cursor.skip()) << text;
    EXPECT_STREQ(cursor.error(), why) << text;
    EXPECT_EQ(cursor.offset(), offset) << text;
  }
}

// Not only the document: each string says for itself that it is none.
TEST(JsonCursor, BadStringsAreNotGivenOut) {
  for (const char* bad :
       {"\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\n\"", "\"\\udc00\"",
        "\"\\ud800\\u0041\"", "\"\x01\"", "\"\xff\"", "\"a", "\"\\"}) {
    JsonCursor cursor(bad);
    std::string text;
    EXPECT_FALSE(cursor.string(text)) << bad;
    EXPECT_FALSE(cursor.ok()) << bad;
    EXPECT_EQ(cursor.peek(), JsonKind::kEnd) << bad;
  }
}

// The text is a part of a larger one.
TEST(JsonCursor, NumberEndsWhereTheTextEnds) {
  for (const std::string_view all : {"1234", "1.25", "1e25", "1e+5", "-1.5e-3"}) {
    for (size_t size = 1; size <= all.size(); ++size) {
      const std::string part(all.substr(0, size));
      JsonCursor cursor(all.substr(0, size));
      std::string_view number;
      ASSERT_EQ(cursor.number(number), nlohmann::json::accept(part)) << part;
      if (cursor.ok()) {
        EXPECT_EQ(number, part);
      }
    }
  }
  EXPECT_EQ(JsonCursor("1").offset(), 0u);
}

TEST(JsonCursor, DepthHasALimit) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(is_json(nested(kMaxJsonDepth)));
  EXPECT_FALSE(is_json(nested(kMaxJsonDepth + 1)));
  for (const size_t depth : {kMaxJsonDepth, kMaxJsonDepth + 1}) {
    const std::string text = nested(depth);
    EXPECT_EQ(JsonCursor(text).skip(), depth == kMaxJsonDepth);
  }
  EXPECT_FALSE(is_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(is_json(nested(10), 9));
}

TEST(JsonCursor, TextHasALimit) {
  std::string text;
  EXPECT_TRUE(JsonCursor(R"("ab\n")", 0, 1, 3).string(text));
  EXPECT_EQ(text, "ab\n");
  EXPECT_TRUE(JsonCursor(R"("abcd")", 0, 1, 3).skip());
  JsonCursor cursor(R"("abcd")", 0, 1, 3);
  EXPECT_FALSE(cursor.string(text));
  EXPECT_STREQ(cursor.error(), "a text is too long");
  EXPECT_FALSE(JsonCursor(R"("ab\n\n")", 0, 1, 3).string(text));
}

// Another parser, which was not written from this code, agrees on mutilated documents.
TEST(JsonCursor, AgreesWithAnotherParser) {
  const std::string seed =
      R"({"type":"file_header","flags":["a\n\"\u00e9"],"timebase":41.5e1,"x":[true,false,null,{"y":-0}]})";
  std::mt19937 random(7);
  const std::string_view alphabet = "{}[],:\"\\0123456789-+.eEtrufalsn \x01\xC3";
  size_t valid = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed;
    for (uint32_t n = static_cast<uint32_t>(random()) % 3; n > 0; --n) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else {
        text[at] = alphabet[random() % alphabet.size()];
      }
    }
    ASSERT_EQ(is_json(text), nlohmann::json::accept(text)) << text;
    valid += is_json(text) ? 1 : 0;
  }
  EXPECT_GT(valid, 1000u);
}

}  // namespace
}  // namespace collect
