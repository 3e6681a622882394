#include "daemon/upload/s3/s3_xml.h"

#include <expat.h>
#include <fmt/core.h>

#include <charconv>
#include <memory>

namespace collect::upload {
namespace {

struct ParserFree {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

// What expat's callbacks share.
struct Reading {
  XML_Parser parser = nullptr;
  XmlElement root{};
  std::vector<XmlElement> open{};  // from the root to the one that is being read
  size_t elements = 0;
  std::optional<Error> failure{};

  void fail(Code code, const char* what) {
    failure = Error{code, what};
    XML_StopParser(parser, XML_FALSE);
  }
};

void XMLCALL begin_element(void* user, const XML_Char* name, const XML_Char**) {
  auto& reading = *static_cast<Reading*>(user);
  if (++reading.elements > kMaxXmlElements) return reading.fail(Code::kLimit, "too many elements");
  if (reading.open.size() >= kMaxXmlDepth) return reading.fail(Code::kLimit, "nested too deep");
  std::string_view local(name);
  if (const size_t colon = local.rfind(':'); colon != std::string_view::npos) {
    local.remove_prefix(colon + 1);
  }
  reading.open.push_back({std::string(local)});
}

void XMLCALL end_element(void* user, const XML_Char*) {
  auto& reading = *static_cast<Reading*>(user);
  XmlElement done = std::move(reading.open.back());
  reading.open.pop_back();
  if (reading.open.empty()) {
    reading.root = std::move(done);
  } else {
    reading.open.back().children.push_back(std::move(done));
  }
}

void XMLCALL take_text(void* user, const XML_Char* text, int size) {
  auto& reading = *static_cast<Reading*>(user);
  if (!reading.open.empty()) reading.open.back().text.append(text, static_cast<size_t>(size));
}

void XMLCALL refuse_doctype(void* user, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  static_cast<Reading*>(user)->fail(Code::kDamaged, "a document type, which no answer of S3 has");
}

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  for (const XmlElement& element : children) {
    if (element.name == wanted) return &element;
  }
  return nullptr;
}

std::string XmlElement::child_text(std::string_view wanted) const {
  const XmlElement* element = child(wanted);
  return element == nullptr ? std::string() : element->text;
}

Result<uint64_t> XmlElement::child_number(std::string_view wanted) const {
  const std::string digits = child_text(wanted);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Error{Code::kDamaged, fmt::format("<{}> has no number <{}>", name, wanted)};
  }
  return number;
}

Result<XmlElement> read_xml(std::string_view xml) {
  if (xml.size() > kMaxXmlBytes) {
    return Error{Code::kLimit, fmt::format("XML of more than {} bytes", kMaxXmlBytes)};
  }
  // While S3 completes a large object it sends spaces, which may come before the declaration.
  const size_t start = xml.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return Error{Code::kDamaged, "no XML, but an empty body"};
  xml.remove_prefix(start);

  const std::unique_ptr<XML_ParserStruct, ParserFree> parser(XML_ParserCreate(nullptr));
  COLLECT_CHECK(parser != nullptr);
  Reading reading;
  reading.parser = parser.get();
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), begin_element, end_element);
  XML_SetCharacterDataHandler(parser.get(), take_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), refuse_doctype);
  const bool is_whole =
      XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), 1) == XML_STATUS_OK;
  if (is_whole && !reading.failure) return std::move(reading.root);
  const std::string place = fmt::format(
      "XML at byte {}: ",
      static_cast<uint64_t>(start) + static_cast<uint64_t>(XML_GetCurrentByteIndex(parser.get())));
  if (reading.failure) return Error{reading.failure->code, place + reading.failure->message};
  return Error{Code::kDamaged, place + XML_ErrorString(XML_GetErrorCode(parser.get()))};
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace collect::upload
