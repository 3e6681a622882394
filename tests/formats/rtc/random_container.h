// Containers with random content for the tests, together with what a reader must find in them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/rtc/writer.h"

namespace collect::rtc::testing {

struct ExpectedObject {
  std::string stream;
  std::vector<uint8_t> data;
  std::optional<int64_t> time_ns;
};

struct Plan {
  uint64_t seed = 1;
  WriterOptions options;
  size_t operations = 400;
  size_t max_object_bytes = 3000;
  bool fixed_lengths = true;
  bool open_late = true;  // also opens streams inside of Units
  bool finish = true;
};

struct Made {
  std::vector<uint8_t> file;
  std::vector<ExpectedObject> objects;  // without clocks, in the order of their ends
  uint64_t units = 0;
};

class RandomContainer {
 public:
  explicit RandomContainer(const Plan& plan);
  Made make();

 private:
  struct Open {
    uint64_t id = 0;
    std::string name;
    std::string clock;
    std::optional<uint32_t> length;
    bool unfinished = false;
    ExpectedObject object;
  };
  uint64_t below(uint64_t bound) { return random_() % bound; }
  void open(StreamInfo info);
  void open_some_stream();
  void tick();
  void write_some();
  std::optional<int64_t> time_of(const std::string& clock) const;

  Plan plan_;
  std::mt19937_64 random_;
  VectorSink sink_;
  Writer writer_;
  std::vector<Open> streams_;
  Made made_;
  uint64_t clk_id_ = 0;
  uint64_t delta_id_ = 0;
  uint64_t cycles_id_ = 0;
  int64_t now_ns_ = 1609772400000000000;
  std::optional<int64_t> clk_;
  std::optional<int64_t> delta_;
  std::optional<int64_t> cycles_;
};

inline Made make_random(const Plan& plan) {
  return RandomContainer(plan).make();
}

// The bytes of a string, for Writer::write.
inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace collect::rtc::testing
