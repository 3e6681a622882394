// Which characters may be shown to a person: TEXT.md. No allocation and no exceptions, so the
// agent uses it too.
#pragma once

#include <cstdint>

namespace collect {
namespace code_points_detail {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Above ASCII, in order: C1, Default_Ignorable_Code_Point, Bidi_Control, separators of lines and
// paragraphs, interlinear annotation. Noncharacters at the end of each plane are computed.
constexpr Range kHidden[] = {
    {0x0080, 0x009F},    // C1 controls
    {0x00AD, 0x00AD},    // soft hyphen
    {0x034F, 0x034F},    // combining grapheme joiner
    {0x061C, 0x061C},    // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x17B4, 0x17B5},    // Khmer inherent vowels
    {0x180B, 0x180F},    // Mongolian variation selectors, vowel separator
    {0x200B, 0x200F},    // zero width; left-to-right and right-to-left mark
    {0x2028, 0x202E},    // line and paragraph separator; embeddings and overrides
    {0x2060, 0x206F},    // word joiner, invisible operators, isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xFDD0, 0xFDEF},    // noncharacters
    {0xFE00, 0xFE0F},    // variation selectors
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFA0, 0xFFA0},    // halfwidth Hangul filler
    {0xFFF0, 0xFFFB},    // specials: unassigned, interlinear annotation
    {0x1BCA0, 0x1BCA3},  // shorthand format controls
    {0x1D173, 0x1D17A},  // musical beams and slurs
    {0xE0000, 0xE0FFF},  // tags, variation selectors supplement
};

}  // namespace code_points_detail

constexpr bool is_plain_ascii(uint8_t byte) {
  return byte >= 0x20 && byte < 0x7F;
}

// No: controls (C0, DEL, C1), line and paragraph separators, marks that turn the direction of the
// text around, characters that show nothing, noncharacters.
constexpr bool is_printable(uint32_t code_point) {
  if (code_point < 0x80) return is_plain_ascii(static_cast<uint8_t>(code_point));
  if ((code_point & 0xFFFE) == 0xFFFE) return false;  // noncharacters
  for (const auto& range : code_points_detail::kHidden) {
    if (code_point <= range.last) return code_point < range.first;
  }
  return true;
}

}  // namespace collect
