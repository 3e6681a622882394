#include "daemon/upload/s3/s3_xml.h"

#include <gmock/gmock.h>

#include "tests/storage/session_fixture.h"

namespace collect::upload {
namespace {

using ::testing::HasSubstr;

// The answer that AWS's reference shows for ListParts, shortened.
constexpr char kAnswer[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListPartsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
    "<Bucket>example-bucket</Bucket><Key>a &amp; b</Key><IsTruncated>false</IsTruncated>"
    "<Part><PartNumber>2</PartNumber><ETag>\"7778aef83f66abc1fa1e8477f296d394\"</ETag>"
    "<Size>10485760</Size></Part></ListPartsResult>";

TEST(S3XmlTest, ReadsAnAnswer) {
  const auto xml = read_xml(kAnswer);
  ASSERT_OK(xml);
  EXPECT_EQ(xml->name, "ListPartsResult");
  EXPECT_EQ(xml->child_text("Key"), "a & b");
  const XmlElement* part = xml->child("Part");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(*part->child_number("Size"), 10485760u);
  EXPECT_EQ(part->child_number("ETag").code(), Code::kDamaged);
  EXPECT_EQ(part->child_number("Nothing").code(), Code::kDamaged);
  EXPECT_EQ(xml->child("Nothing"), nullptr);
}

TEST(S3XmlTest, SpacesMayComeFirst) {
  EXPECT_OK(read_xml(std::string("  \n ") + kAnswer));
}

TEST(S3XmlTest, EveryPrefixIsRefused) {
  const std::string_view whole = kAnswer;
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(read_xml(whole.substr(0, size)).code(), Code::kDamaged) << size;
  }
}

TEST(S3XmlTest, EveryChangedByteIsReadOrRefused) {
  const std::string whole = kAnswer;
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 4, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto xml = read_xml(changed);
      if (!xml.ok()) {
        ++refused;
        EXPECT_EQ(xml.code(), Code::kDamaged);
      }
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(S3XmlTest, LimitsHold) {
  const auto nested = [](size_t depth) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += "<a>";
    for (size_t i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_OK(read_xml(nested(kMaxXmlDepth)));
  EXPECT_EQ(read_xml(nested(kMaxXmlDepth + 1)).code(), Code::kLimit);
  const auto wide = [](size_t elements) {
    std::string text = "<a>";
    for (size_t i = 1; i < elements; ++i) text += "<b/>";
    return text + "</a>";
  };
  EXPECT_OK(read_xml(wide(kMaxXmlElements)));
  EXPECT_EQ(read_xml(wide(kMaxXmlElements + 1)).code(), Code::kLimit);
  const auto long_text = [](size_t bytes) { return "<a>" + std::string(bytes - 7, 'x') + "</a>"; };
  EXPECT_OK(read_xml(long_text(kMaxXmlBytes)));
  EXPECT_EQ(read_xml(long_text(kMaxXmlBytes + 1)).code(), Code::kLimit);
}

TEST(S3XmlTest, NoDocumentTypes) {
  const auto xml = read_xml("<!DOCTYPE a [<!ENTITY b \"cc\">]><a>&b;</a>");
  EXPECT_EQ(xml.code(), Code::kDamaged);
  EXPECT_THAT(xml.error().message, HasSubstr("document type"));
}

TEST(S3XmlTest, EscapedTextReadsBack) {
  const std::string text = "\"<&>'\"";
  EXPECT_EQ(read_xml("<a>" + escape_xml(text) + "</a>")->text, text);
}

}  // namespace
}  // namespace collect::upload
