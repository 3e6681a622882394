#include "daemon/symbolize/protocol.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/symbolize/limits.h"
#include "formats/core/crc32.h"
#include "formats/core/text/function_pattern.h"

namespace collect::symbolize {
namespace {

static_assert(kMaxFunctionWordBytes <= kMaxPathBytes, "a request holds any pattern");

bool is_kind(uint32_t value) {
  switch (static_cast<FrameKind>(value)) {
    case FrameKind::kRequest:
    case FrameKind::kSource:
    case FrameKind::kNames:
    case FrameKind::kLines:
    case FrameKind::kFunctions:
    case FrameKind::kDone:
      return true;
  }
  return false;
}

template <class T>
void put(std::vector<uint8_t>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  store_le(out.data() + at, value);
}

void put_bytes(std::vector<uint8_t>& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out.insert(out.end(), text.begin(), text.end());
}

void put_list(std::vector<uint8_t>& out, const std::vector<std::string>& texts) {
  put(out, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) put_bytes(out, text);
}

// Reads a body from front to end; after the first thing that does not fit, nothing more.
class BodyReader {
 public:
  explicit BodyReader(Bytes body) : rest_(body) {}

  template <class T>
  T number() {
    if (rest_.size() < sizeof(T)) {
      fail();
      return 0;
    }
    const T value = load_le<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  std::string_view bytes(size_t most) { return take(number<uint32_t>(), most); }

  std::string_view take(size_t count, size_t most) {
    if (count > most || count > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), count);
    rest_ = rest_.subspan(count);
    return text;
  }

  // How many things of at least `least_bytes` follow.
  size_t count(size_t most, size_t least_bytes) {
    const size_t number_of = number<uint32_t>();
    if (number_of <= most && number_of <= rest_.size() / least_bytes) return number_of;
    fail();
    return 0;
  }

  std::vector<std::string> list(size_t most) {
    std::vector<std::string> texts(count(most, sizeof(uint32_t)));
    for (std::string& text : texts) text = bytes(kMaxPathBytes);
    return texts;
  }

  bool at_end() const { return rest_.empty(); }
  bool ok() const { return ok_; }
  Status status() const {
    if (ok_ && rest_.empty()) return {};
    return Error{Code::kDamaged, "a frame of the symbolizer has other bytes than its counts say"};
  }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  Bytes rest_;
  bool ok_ = true;
};

}  // namespace

void FrameReader::push(Bytes bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(begin_));
    begin_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Frame>> FrameReader::next() {
  const Bytes rest = Bytes(buffer_).subspan(begin_);
  if (rest.size() < sizeof(FrameHeader)) return std::optional<Frame>();
  const auto header = load_le<FrameHeader>(rest.data());
  if (!is_kind(header.kind)) return Error{Code::kDamaged, "not a frame of the symbolizer"};
  if (header.bytes > max_body_bytes_) {
    return Error{Code::kLimit, fmt::format("a frame of the symbolizer has {} bytes", header.bytes)};
  }
  if (rest.size() - sizeof header < header.bytes) return std::optional<Frame>();
  const Bytes body = rest.subspan(sizeof header, header.bytes);
  if (crc32c(body) != header.crc32c) {
    return Error{Code::kDamaged, "a frame of the symbolizer has a wrong checksum"};
  }
  begin_ += sizeof header + header.bytes;
  return std::optional<Frame>(Frame{static_cast<FrameKind>(header.kind), body});
}

std::vector<uint8_t> frame_bytes(FrameKind kind, Bytes body) {
  std::vector<uint8_t> frame;
  frame.reserve(sizeof(FrameHeader) + body.size());
  put(frame,
      FrameHeader{static_cast<uint32_t>(kind), static_cast<uint32_t>(body.size()), crc32c(body)});
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

std::vector<uint8_t> encode_request(const LookupRequest& request) {
  std::vector<uint8_t> body;
  put_bytes(body, request.module_path);
  put_bytes(body,
            {reinterpret_cast<const char*>(request.build_id.data()), request.build_id.size()});
  put(body, request.module_bytes);
  put_list(body, request.roots);
  put_list(body, request.directories);
  put_list(body, request.patterns);
  put(body, request.most_names);
  put(body, request.most_name_bytes);
  put(body, static_cast<uint32_t>(request.addresses.size()));
  for (const uint32_t address : request.addresses) put(body, address);
  return body;
}

Result<LookupRequest> decode_request(Bytes body) {
  BodyReader reader(body);
  LookupRequest request;
  request.module_path = reader.bytes(kMaxPathBytes);
  const std::string_view build_id = reader.bytes(kMaxPathBytes);
  request.build_id.assign(build_id.begin(), build_id.end());
  request.module_bytes = reader.number<uint64_t>();
  request.roots = reader.list(kMaxCandidates);
  request.directories = reader.list(kMaxCandidates);
  request.patterns = reader.list(kMaxFunctionPatterns);
  request.most_names = reader.number<uint64_t>();
  request.most_name_bytes = reader.number<uint64_t>();
  request.addresses.resize(reader.count(kMaxRequestBytes, sizeof(uint32_t)));
  for (uint32_t& address : request.addresses) address = reader.number<uint32_t>();
  COLLECT_TRY(reader.status());
  if (!std::is_sorted(request.addresses.begin(), request.addresses.end())) {
    return Error{Code::kDamaged, "the addresses of a request are not sorted"};
  }
  return request;
}

std::vector<uint8_t> encode_source(const SourceFrame& source) {
  std::vector<uint8_t> body;
  for (const std::string* text : {&source.path, &source.problem, &source.missing}) {
    put_bytes(body, std::string_view(*text).substr(0, kMaxPathBytes));
  }
  return body;
}

Result<SourceFrame> decode_source(Bytes body) {
  BodyReader reader(body);
  SourceFrame source;
  source.path = reader.bytes(kMaxPathBytes);
  source.problem = reader.bytes(kMaxPathBytes);
  source.missing = reader.bytes(kMaxPathBytes);
  COLLECT_TRY(reader.status());
  return source;
}

void append_name(std::vector<uint8_t>& body, uint32_t address, std::string_view name) {
  put(body, address);
  put(body, static_cast<uint16_t>(name.size()));
  body.insert(body.end(), name.begin(), name.end());
}

Status decode_names(Bytes body, std::vector<NamedAddress>& out) {
  BodyReader reader(body);
  while (!reader.at_end()) {
    NamedAddress named;
    named.address = reader.number<uint32_t>();
    named.name = reader.take(reader.number<uint16_t>(), kMaxSymbolNameBytes);
    if (reader.ok()) out.push_back(std::move(named));
  }
  return reader.status();
}

void append_line(std::vector<uint8_t>& body, uint32_t address, std::string_view file,
                 uint32_t line) {
  put(body, address);
  put(body, line);
  put(body, static_cast<uint16_t>(file.size()));
  body.insert(body.end(), file.begin(), file.end());
}

Status decode_lines(Bytes body, std::vector<LineOfAddress>& out) {
  BodyReader reader(body);
  while (!reader.at_end()) {
    LineOfAddress one;
    one.address = reader.number<uint32_t>();
    one.line = reader.number<uint32_t>();
    one.file = reader.take(reader.number<uint16_t>(), kMaxPathBytes);
    if (reader.ok()) out.push_back(std::move(one));
  }
  return reader.status();
}

void append_function(std::vector<uint8_t>& body, uint32_t address) {
  put(body, address);
}

Status decode_functions(Bytes body, std::vector<uint32_t>& out) {
  BodyReader reader(body);
  while (!reader.at_end()) {
    const uint32_t address = reader.number<uint32_t>();
    if (reader.ok()) out.push_back(address);
  }
  return reader.status();
}

std::vector<uint8_t> encode_done(const DoneFrame& done) {
  std::vector<uint8_t> body;
  put(body, done.left_out);
  put(body, done.lines_left_out);
  put_bytes(body, {reinterpret_cast<const char*>(done.matched.data()), done.matched.size()});
  return body;
}

Result<DoneFrame> decode_done(Bytes body) {
  BodyReader reader(body);
  DoneFrame done;
  done.left_out = reader.number<uint64_t>();
  done.lines_left_out = reader.number<uint64_t>();
  const std::string_view matched = reader.bytes(kMaxFunctionPatterns);
  done.matched.assign(matched.begin(), matched.end());
  COLLECT_TRY(reader.status());
  return done;
}

}  // namespace collect::symbolize
