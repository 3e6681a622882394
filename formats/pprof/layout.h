// The fields of pprof's profile.proto that we write, by message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::pprof {

struct Profile {
  static constexpr uint32_t kSampleType = 1;
  static constexpr uint32_t kSample = 2;
  static constexpr uint32_t kMapping = 3;
  static constexpr uint32_t kLocation = 4;
  static constexpr uint32_t kFunction = 5;
  static constexpr uint32_t kStringTable = 6;
  static constexpr uint32_t kTimeNanos = 9;
  static constexpr uint32_t kDurationNanos = 10;
  static constexpr uint32_t kComment = 13;
  static constexpr uint32_t kDefaultSampleType = 14;
};
struct ValueType {
  static constexpr uint32_t kType = 1;
  static constexpr uint32_t kUnit = 2;
};
struct Sample {
  static constexpr uint32_t kLocationId = 1;  // leaf first
  static constexpr uint32_t kValue = 2;       // as many as there are sample types
  static constexpr uint32_t kLabel = 3;
};
struct Label {
  static constexpr uint32_t kKey = 1;
  static constexpr uint32_t kStr = 2;
};
struct Mapping {
  static constexpr uint32_t kId = 1;
  static constexpr uint32_t kMemoryStart = 2;
  static constexpr uint32_t kMemoryLimit = 3;
  static constexpr uint32_t kFilename = 5;
  static constexpr uint32_t kBuildId = 6;
  static constexpr uint32_t kHasFunctions = 7;
};
struct Location {
  static constexpr uint32_t kId = 1;
  static constexpr uint32_t kMappingId = 2;
  static constexpr uint32_t kAddress = 3;
  static constexpr uint32_t kLine = 4;
};
struct Line {
  static constexpr uint32_t kFunctionId = 1;
  static constexpr uint32_t kLine = 2;
};
struct Function {
  static constexpr uint32_t kId = 1;
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kSystemName = 3;
  static constexpr uint32_t kFilename = 4;
  static constexpr uint32_t kStartLine = 5;
};

inline constexpr size_t kPieceBytes = 256 << 10;   // given to the compression at once
inline constexpr size_t kMaxTextBytes = 16 << 10;  // of a name; the rest is cut

}  // namespace collect::pprof
