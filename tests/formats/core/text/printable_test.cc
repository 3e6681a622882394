#include "formats/core/text/printable.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/core/text/utf8.h"

namespace collect {
namespace {

struct Shown {
  std::string from;
  std::string to;
};

// Each class of characters that moves a cursor, ends a line, turns the direction or shows nothing:
// its first, its last, and where it matters its neighbours.
const std::vector<Shown>& hidden() {
  static const std::vector<Shown> kCases = {
      {std::string(1, '\0'), "\\x00"},
      {"\x07", "\\x07"},
      {"\b", "\\x08"},
      {"\t", "\\t"},
      {"\n", "\\n"},
      {"\v", "\\x0b"},
      {"\f", "\\x0c"},
      {"\r", "\\r"},
      {"\x1b", "\\x1b"},
      {"\x1f", "\\x1f"},
      {"\x7f", "\\x7f"},
      {"\u0080", "\\u{80}"},
      {"\u0085", "\\u{85}"},  // next line
      {"\u009b", "\\u{9b}"},  // control sequence introducer
      {"\u009d", "\\u{9d}"},  // operating system command
      {"\u009f", "\\u{9f}"},
      {"\u00ad", "\\u{ad}"},
      {"\u034f", "\\u{34f}"},
      {"\u061c", "\\u{61c}"},
      {"\u115f", "\\u{115f}"},
      {"\u180e", "\\u{180e}"},
      {"\u200b", "\\u{200b}"},
      {"\u200d", "\\u{200d}"},
      {"\u200e", "\\u{200e}"},
      {"\u200f", "\\u{200f}"},
      {"\u2028", "\\u{2028}"},
      {"\u2029", "\\u{2029}"},
      {"\u202a", "\\u{202a}"},
      {"\u202e", "\\u{202e}"},
      {"\u2060", "\\u{2060}"},
      {"\u2066", "\\u{2066}"},
      {"\u2069", "\\u{2069}"},
      {"\u206f", "\\u{206f}"},
      {"\u3164", "\\u{3164}"},
      {"\ufdd0", "\\u{fdd0}"},
      {"\ufdef", "\\u{fdef}"},
      {"\ufe00", "\\u{fe00}"},
      {"\ufe0f", "\\u{fe0f}"},
      {"\ufeff", "\\u{feff}"},
      {"\ufff9", "\\u{fff9}"},
      {"\ufffe", "\\u{fffe}"},
      {"\uffff", "\\u{ffff}"},
      {"\U0001d173", "\\u{1d173}"},
      {"\U0001fffe", "\\u{1fffe}"},
      {"\U000e0000", "\\u{e0000}"},
      {"\U000e0041", "\\u{e0041}"},
      {"\U000e007f", "\\u{e007f}"},
      {"\U000e0fff", "\\u{e0fff}"},
      {"\U0010ffff", "\\u{10ffff}"},
      // Not UTF-8: byte by byte.
      {"\x80", "\\x80"},
      {"\x9b", "\\x9b"},
      {"\xc0\x9b", "\\xc0\\x9b"},           // over-long
      {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},  // over-long
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xff", "\\xff"},
  };
  return kCases;
}

const char* const kShownAsTheyAre[] = {
    " ",          "~",        "azAZ09", "\u00a0",     "\u00ac", "\u00ae",     "ü",
    "\u034e",     "\u0350",   "\u061b", "שלום",       "\u115e", "\u200a",     "\u2010",
    "\u2027",     "\u202f",   "\u205f", "\u2070",     "日本語", "\ufdcf",     "\ufdf0",
    "\ufe10",     "\ufffc",   "\ufffd", "\U00010000", "📱",     "\U000dfffd", "\U000e1000",
    "\U0010fffd", "'quoted'", "a/b:c"};

TEST(Printable, EscapesWhatMovesHidesOrForges) {
  for (const Shown& each : hidden()) {
    EXPECT_EQ(printable(each.from), each.to);
    EXPECT_EQ(printable("a" + each.from + "b"), "a" + each.to + "b");
    EXPECT_EQ(printable_sentence("a" + each.from + "b"), "a" + each.to + "b");
    EXPECT_EQ(in_quotes(each.from), "\"" + each.to + "\"");
  }
}

// TEXT.md's table, for ASCII.
TEST(Printable, EachAsciiByteHasItsForm) {
  for (int byte = 0; byte < 0x80; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    std::string shown = text;
    if (byte < 0x20 || byte == 0x7F) {
      char escape[16];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(byte));
      shown = byte == '\n' ? "\\n" : byte == '\r' ? "\\r" : byte == '\t' ? "\\t" : escape;
    }
    EXPECT_EQ(printable_sentence(text), shown) << byte;
    EXPECT_EQ(printable_sentence("\x1b" + text), "\\x1b" + shown) << byte;
    const std::string name = byte == '\\' ? "\\\\" : shown;
    EXPECT_EQ(printable(text), name) << byte;
    EXPECT_EQ(printable(text + "\x1b"), name + "\\x1b") << byte;
    EXPECT_EQ(in_quotes(text), "\"" + (byte == '"' ? "\\\"" : name) + "\"") << byte;
    EXPECT_EQ(is_plain_name(text), name == text) << byte;
  }
}

// Unicode 3.9, table 3-7.
TEST(Printable, SurrogatesAndWhatIsBeyondUnicodeAreBytes) {
  for (const std::string text : {"\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbd"}) {
    EXPECT_EQ(printable(text), text);  // U+D7FF, U+E000, U+10FFFD
    EXPECT_EQ(printable_sentence(text), text);
  }
  const Shown cases[] = {{"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // U+D800
                         {"\xed\xaf\xbf", "\\xed\\xaf\\xbf"},
                         {"\xed\xb0\x80", "\\xed\\xb0\\x80"},
                         {"\xed\xbf\xbf", "\\xed\\xbf\\xbf"},           // U+DFFF
                         {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // U+110000
                         {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
                         {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"}};
  for (const Shown& each : cases) {
    EXPECT_EQ(printable(each.from), each.to);
    EXPECT_EQ(printable_sentence("ü" + each.from + "ü"), "ü" + each.to + "ü");
    EXPECT_EQ(in_quotes(each.from), "\"" + each.to + "\"");
  }
}

TEST(Printable, CharacterBehindACutOneIsWhole) {
  const Shown cases[] = {{"\xc3", "\\xc3"},          {"\xe2", "\\xe2"},
                         {"\xe2\x82", "\\xe2\\x82"}, {"\xf0", "\\xf0"},
                         {"\xf0\x9f", "\\xf0\\x9f"}, {"\xf0\x9f\x93", "\\xf0\\x9f\\x93"}};
  for (const Shown& each : cases) {
    for (const std::string next : {"", "a", "ü", "日", "📱"}) {
      EXPECT_EQ(printable(each.from + next), each.to + next);
      EXPECT_EQ(printable_sentence(next + each.from + next), next + each.to + next);
    }
  }
}

TEST(Printable, LeavesLettersAsTheyAre) {
  for (const std::string text : kShownAsTheyAre) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_sentence(text), text);
    EXPECT_EQ(in_quotes(text), "\"" + text + "\"");
  }
}

TEST(Printable, EscapesEveryPrefixOfACharacter) {
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xf0\x9f\x93"), "\\xf0\\x9f\\x93");
  EXPECT_EQ(printable("\xf0\x9f\x93 \xf0\x9f\x93\xb1"), "\\xf0\\x9f\\x93 📱");
}

TEST(Printable, DoublesBackslashesSoThatNamesThatDifferLookDifferent) {
  EXPECT_EQ(printable("\\x1b"), "\\\\x1b");
  EXPECT_NE(printable("\\x1b"), printable("\x1b"));
  EXPECT_NE(printable("\x80"), printable("\u0080"));
  EXPECT_EQ(in_quotes("say \"hi\"\\"), "\"say \\\"hi\\\"\\\\\"");
}

TEST(Printable, SentencesAreIdempotent) {
  for (const Shown& each : hidden()) {
    const std::string once = printable_sentence("name " + printable(each.from + "\\") + "\n");
    EXPECT_EQ(printable_sentence(once), once);
  }
  EXPECT_EQ(printable_sentence("C:\\new"), "C:\\new");
}

TEST(Printable, NeverReturnsMoreThanTheBound) {
  const std::string texts[] = {std::string(100, 'a'), std::string(100, '\x1b'),
                               "ab\u202e\u202e\u202e\u202ecd", "日本語日本語日本語日本語"};
  for (const std::string& text : texts) {
    const std::string whole = printable(text, 1000);
    for (size_t bound = 0; bound <= whole.size() + 1; ++bound) {
      const std::string cut = printable(text, bound);
      EXPECT_LE(cut.size(), bound);
      EXPECT_TRUE(is_utf8(cut));
      if (bound >= whole.size()) {
        EXPECT_EQ(cut, whole);
      } else if (bound >= 3) {
        ASSERT_TRUE(cut.ends_with("…")) << cut;
        EXPECT_TRUE(whole.starts_with(cut.substr(0, cut.size() - 3)));
      }
    }
  }
  // What is before it, as the quotation mark, is not counted.
  for (size_t bound = 0; bound < 40; ++bound) {
    EXPECT_EQ(in_quotes(texts[3], bound), "\"" + printable(texts[3], bound) + "\"");
  }
  const std::string long_name(kMaxPrintableBytes + 1, 'a');
  EXPECT_EQ(in_quotes(long_name), "\"" + printable(long_name) + "\"");
  EXPECT_EQ(printable(std::string(10, '\n'), 8), "\\n\\n…");
  EXPECT_EQ(printable(std::string(kMaxPrintableBytes, 'a')), std::string(kMaxPrintableBytes, 'a'));
  EXPECT_EQ(printable(std::string(kMaxPrintableBytes + 1, 'a')).size(), kMaxPrintableBytes);
  EXPECT_EQ(printable_sentence(std::string(kMaxSentenceBytes + 1, 'a')).size(), kMaxSentenceBytes);
}

// The ellipsis has 3 bytes.
TEST(Printable, CutsBehindTheLastCharacterThatFits) {
  const std::string letters(10, 'a');
  EXPECT_EQ(printable(letters, 10), letters);
  EXPECT_EQ(printable(letters, 9), "aaaaaa…");
  EXPECT_EQ(printable(letters, 4), "a…");
  EXPECT_EQ(printable(letters, 3), "…");
  EXPECT_EQ(printable(letters, 2), "");
  EXPECT_EQ(printable_sentence("\n\n\n\n", 8), "\\n\\n\\n\\n");
  EXPECT_EQ(printable_sentence("\n\n\n\n", 7), "\\n\\n…");
  EXPECT_EQ(printable_sentence("\n\n\n\n", 6), "\\n…");
  EXPECT_EQ(in_quotes("üüüü", 7), "\"üü…\"");
  EXPECT_EQ(in_quotes("üüüü", 6), "\"ü…\"");
}

TEST(Printable, EveryCodePointIsEitherShownOrEscaped) {
  for (uint32_t code = 0x80; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    char bytes[4];
    size_t size = 0;
    if (code < 0x800) {
      bytes[size++] = static_cast<char>(0xC0 | code >> 6);
    } else {
      if (code < 0x10000) {
        bytes[size++] = static_cast<char>(0xE0 | code >> 12);
      } else {
        bytes[size++] = static_cast<char>(0xF0 | code >> 18);
        bytes[size++] = static_cast<char>(0x80 | (code >> 12 & 0x3F));
      }
      bytes[size++] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    }
    bytes[size++] = static_cast<char>(0x80 | (code & 0x3F));
    const std::string text(bytes, size);
    char escape[16];
    std::snprintf(escape, sizeof escape, "\\u{%02x}", code);
    ASSERT_EQ(printable(text), is_printable(code) ? text : std::string(escape));
  }
}

TEST(Printable, PlainNamesAreThoseThatStayAsTheyAre) {
  for (const char* plain : {"", "a", "a b/c:d.e", "say \"hi\"", "~"}) {
    EXPECT_TRUE(is_plain_name(plain)) << plain;
    EXPECT_EQ(printable(plain), plain);
  }
  for (const char* other : {"\\", "a\n", "\x7f", "ü", "a\x1b", "\xff"}) {
    EXPECT_FALSE(is_plain_name(other)) << other;
  }
}

TEST(PrintableText, KeepsLineEndsAndTabsAlone) {
  std::string out;
  EXPECT_EQ(append_printable_text(out, "a\tb\nc\rd\x1b[2J\\\u202eü\x9b\n"), 0u);
  EXPECT_EQ(out, "a\tb\nc\\rd\\x1b[2J\\\\u{202e}ü\\x9b\n");
}

// A stream's blocks end anywhere.
TEST(PrintableText, WaitsForTheRestOfACharacter) {
  const std::string text = "x\u009b\u202eü📱\xe2\x82z\xf0\x9f";
  std::string whole;
  const size_t whole_rest = append_printable_text(whole, text);
  EXPECT_EQ(whole_rest, 2u);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    std::string out;
    const size_t rest = append_printable_text(out, text.substr(0, cut));
    ASSERT_LE(rest, 3u);
    EXPECT_EQ(append_printable_text(out, text.substr(cut - rest)), whole_rest);
    EXPECT_EQ(out, whole) << cut;
  }
}

TEST(PrintableText, ByteThatBeginsNoCharacterDoesNotWait) {
  const Shown cases[] = {{"\x80", "a\\x80"}, {"\xbf", "a\\xbf"}, {"\xc0", "a\\xc0"},
                         {"\xc1", "a\\xc1"}, {"\xf5", "a\\xf5"}, {"\xff", "a\\xff"}};
  for (const Shown& each : cases) {
    std::string out;
    EXPECT_EQ(append_printable_text(out, "a" + each.from), 0u);
    EXPECT_EQ(out, each.to);
  }
  for (const std::string first : {"\xc2", "\xdf", "\xe0", "\xed", "\xf0", "\xf4"}) {
    std::string out;
    EXPECT_EQ(append_printable_text(out, "a" + first), 1u);
    EXPECT_EQ(out, "a");
  }
}

// Text is looked at in chunks of 64 bytes: each byte at both ends of a chunk, and in the rest.
TEST(PrintableText, PlainPrefixEndsAtTheFirstOtherByte) {
  for (const size_t size : {1, 63, 64, 65, 127, 128, 129, 200}) {
    const std::string plain(size, 'a');
    EXPECT_EQ(plain_text_prefix(plain), size);
    for (const size_t at : {0, 1, 62, 63, 64, 65, 127, 128, 191, 192, 199}) {
      if (at >= size) continue;
      for (int byte = 0; byte < 256; ++byte) {
        std::string text = plain;
        text[at] = static_cast<char>(byte);
        const bool is_plain = (byte >= 0x20 && byte <= 0x7E) || byte == '\n' || byte == '\t';
        ASSERT_EQ(plain_text_prefix(text), is_plain ? size : at) << byte << " at " << at;
      }
    }
  }
}

TEST(JsonString, EscapesBetweenThePrintableRanges) {
  const auto json = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  };
  EXPECT_EQ(json("\x1f \x7e\x7f\u0080\u009f\u00a0"), "\"\\u001f ~\\u007f\\u0080\\u009f\u00a0\"");
  EXPECT_EQ(json("\""), "\"\\\"\"");
  EXPECT_EQ(json("\\"), "\"\\\\\"");
  EXPECT_EQ(printable_json(" \x7e\x7f\u0080\u009f\u00a0"), " ~\\u007f\\u0080\\u009f\u00a0");
  std::string minimal;
  append_minimal_json_string(minimal, "\x1f \x7e\x7f\u009f\u00a0");
  EXPECT_EQ(minimal, "\"\\u001f ~\x7f\u009f\u00a0\"");
}

TEST(JsonString, EscapesWhatIsNotPrintable) {
  const auto json = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  };
  EXPECT_EQ(json("a\"b\\c\n\r\t\b\f"), R"("a\"b\\c\n\r\t\b\f")");
  EXPECT_EQ(json(std::string("\0\x1b\x7f", 3)), R"("\u0000\u001b\u007f")");
  EXPECT_EQ(json("\u009b\u202e\u200b"), R"("\u009b\u202e\u200b")");
  EXPECT_EQ(json("\U000e0041\U0010ffff"), R"("\udb40\udc41\udbff\udfff")");
  EXPECT_EQ(json("ü日📱"), "\"ü日📱\"");
  EXPECT_EQ(json("\xff\xe2\x82z"), "\"\ufffd\ufffdz\"");
}

TEST(JsonString, MinimalEscapesOnlyWhatJsonDemands) {
  std::string out;
  append_minimal_json_string(out, "a\"\\\n\x01\x7f\ufeff\u202e\xff");
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001\x7f\ufeff\u202e\ufffd\"");
  EXPECT_EQ(printable_json(out), "\"a\\\"\\\\\\n\\u0001\\u007f\\ufeff\\u202e\ufffd\"");
}

TEST(JsonString, JsonOfOthersBecomesPrintable) {
  EXPECT_EQ(printable_json("[\"a\xFF\xC3\"]"), "[\"a\ufffd\ufffd\"]");
  EXPECT_EQ(printable_json("{\"a\u202e\":\"\x7f\u0085\U000e0041ü\"}\n"),
            "{\"a\\u202e\":\"\\u007f\\u0085\\udb40\\udc41ü\"}\n");
}

}  // namespace
}  // namespace collect
