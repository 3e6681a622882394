// What the daemon and collect-symbolizer say to each other over two pipes: one request, then frames
// of the answer. SYMBOLIZE.md "Request and answer" has the layout. Neither side trusts the other's
// bytes: the child reads what peers named, and what it says may be a peer's doing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::symbolize {

struct FrameHeader {  // 12 bytes, little-endian
  uint32_t kind;      //  0  FrameKind
  uint32_t bytes;     //  4  of the body
  uint32_t crc32c;    //  8  of the body
};
static_assert(sizeof(FrameHeader) == 12);

enum class FrameKind : uint32_t {
  kRequest = 0x51'59'53'43,    // "CSYQ"
  kSource = 0x53'59'53'43,     // "CSYS"  which file names come from
  kNames = 0x4e'59'53'43,      // "CSYN"  addresses with names
  kLines = 0x4c'59'53'43,      // "CSYL"  addresses with files and lines
  kFunctions = 0x46'59'53'43,  // "CSYF"  addresses that a pattern means
  kDone = 0x44'59'53'43,       // "CSYD"  the last frame
};

struct Frame {
  FrameKind kind{};
  Bytes body;  // into the reader's buffer, until the next call
};

// Takes bytes in any portions and yields whole frames. Invariant: the buffer begins with a frame's
// header. The buffer holds (1) a part of a header, (2) a header and a part of its body, (3) one
// whole frame, (4) a whole frame and the beginning of the next.
class FrameReader {
 public:
  explicit FrameReader(size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  void push(Bytes bytes);
  // Nothing: more bytes are needed. kDamaged, kLimit: the stream can't continue.
  Result<std::optional<Frame>> next();
  bool empty() const { return begin_ == buffer_.size(); }  // nothing waits for its rest

 private:
  const size_t max_body_bytes_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;
};

std::vector<uint8_t> frame_bytes(FrameKind kind, Bytes body);

// Names the functions at `addresses`, or finds those that `patterns` mean; one of the two is empty.
struct LookupRequest {
  std::string module_path;  // as a peer said it
  std::vector<uint8_t> build_id;
  uint64_t module_bytes = 0;             // of its image; 0: not known
  std::vector<std::string> roots;        // module files are below one of these
  std::vector<std::string> directories;  // searched for files by build id and by name
  std::vector<uint32_t> addresses;       // module-relative, sorted
  std::vector<std::string> patterns;     // function_pattern.h
  uint64_t most_names = 0;
  uint64_t most_name_bytes = 0;  // of all names together
};
std::vector<uint8_t> encode_request(const LookupRequest& request);
Result<LookupRequest> decode_request(Bytes body);

struct SourceFrame {
  std::string path;     // of the file, empty when there is none
  std::string problem;  // why not, or what is unusual about it
  std::string missing;  // what of the confinement this kernel does not have
};
std::vector<uint8_t> encode_source(const SourceFrame& source);
Result<SourceFrame> decode_source(Bytes body);

struct NamedAddress {
  uint32_t address = 0;
  std::string name;
  std::string file{};  // of its source; empty: not known
  uint32_t line = 0;
};
// Gathers names into bodies of at most kMaxAnswerFrameBytes.
void append_name(std::vector<uint8_t>& body, uint32_t address, std::string_view name);
Status decode_names(Bytes body, std::vector<NamedAddress>& out);

// File and line of an address.
struct LineOfAddress {
  uint32_t address = 0;
  uint32_t line = 0;
  std::string file;
};
void append_line(std::vector<uint8_t>& body, uint32_t address, std::string_view file,
                 uint32_t line);
Status decode_lines(Bytes body, std::vector<LineOfAddress>& out);

void append_function(std::vector<uint8_t>& body, uint32_t address);
Status decode_functions(Bytes body, std::vector<uint32_t>& out);

struct DoneFrame {
  uint64_t left_out = 0;         // names that did not fit under the limits
  uint64_t lines_left_out = 0;   // the same of lines
  std::vector<uint8_t> matched;  // for each pattern, 1 where it means some function
};
std::vector<uint8_t> encode_done(const DoneFrame& done);
Result<DoneFrame> decode_done(Bytes body);

}  // namespace collect::symbolize
