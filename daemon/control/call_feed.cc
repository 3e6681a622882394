#include "daemon/control/call_feed.h"

#include <utility>

namespace collect::control {
namespace {

constexpr size_t kHeadBytes = 5;

void put_u32(std::string& to, size_t value) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(value >> shift & 0xff);
}

size_t u32_at(std::string_view bytes) {
  size_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= size_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

void put_text(std::string& to, std::string_view text) {
  put_u32(to, text.size());
  to += text;
}

bool take_u32(std::string_view& from, size_t& value) {
  if (from.size() < 4) return false;
  value = u32_at(from);
  from.remove_prefix(4);
  return true;
}

bool take_text(std::string_view& from, std::string& text) {
  size_t size = 0;
  if (!take_u32(from, size) || size > from.size()) return false;
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

void put_texts(std::string& to, const std::vector<std::string>& texts) {
  put_u32(to, texts.size());
  for (const std::string& text : texts) put_text(to, text);
}

bool take_texts(std::string_view& from, std::vector<std::string>& texts) {
  size_t count = 0;
  if (!take_u32(from, count)) return false;
  // Each takes four bytes at least, so a wrong count ends with the bytes.
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    if (!take_text(from, text)) return false;
    texts.push_back(std::move(text));
  }
  return true;
}

}  // namespace

std::string feed_frame(FeedKind kind, std::string_view body) {
  std::string frame;
  put_u32(frame, body.size());
  frame += static_cast<char>(kind);
  frame += body;
  return frame;
}

Status FeedReader::take(Bytes bytes, const Take& take_frame) {
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view rest(buffer_);
  while (rest.size() >= kHeadBytes) {
    const size_t size = u32_at(rest);
    const auto kind = static_cast<uint8_t>(rest[4]);
    if (size > kMaxFeedBodyBytes || kind < 1 || kind > 3) {
      return Error{Code::kDamaged, "it sent bytes that are no frame"};
    }
    if (rest.size() < kHeadBytes + size) break;
    COLLECT_TRY(take_frame(static_cast<FeedKind>(kind), rest.substr(kHeadBytes, size)));
    rest.remove_prefix(kHeadBytes + size);
  }
  buffer_.erase(0, buffer_.size() - rest.size());
  return {};
}

std::string FeedRequest::body() const {
  std::string body;
  put_text(body, directory);
  put_u32(body, finds_names ? 1 : 0);
  put_texts(body, symbol_directories);
  put_texts(body, symbol_roots);
  put_text(body, wanted.SerializeAsString());
  return body;
}

Result<FeedRequest> FeedRequest::parse(std::string_view body) {
  FeedRequest request;
  size_t finds_names = 0;
  std::string wanted;
  const bool is_read = take_text(body, request.directory) && take_u32(body, finds_names) &&
                       take_texts(body, request.symbol_directories) &&
                       take_texts(body, request.symbol_roots) && take_text(body, wanted) &&
                       body.empty() && finds_names <= 1 && request.wanted.ParseFromString(wanted);
  if (!is_read) return Error{Code::kDamaged, "not a request to follow calls"};
  request.finds_names = finds_names == 1;
  return request;
}

}  // namespace collect::control
