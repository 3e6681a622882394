// Files for tests: a small one with a bit of everything, and random ones whose content is known
// from the calls that wrote them, not from reading them back.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/wtf/binary/reader.h"
#include "formats/wtf/binary/writer.h"

namespace collect::wtf::testing {

// An event as one line: "zone | name | us | argument=value …".
std::string line_of(const std::string& zone, const Event& event);
// All events of a file in its order, without definitions and zone events.
std::vector<std::string> lines_of(Bytes file, Findings& findings);

// Zones, a scope with arguments, nested ones, every builtin event, resources; several chunks if
// `chunk_bytes` is small.
std::vector<uint8_t> build_file(size_t chunk_bytes = size_t{512} << 10);

struct RandomFile {
  std::vector<uint8_t> bytes;
  std::vector<std::string> lines;  // what was written
};
// Event types with every argument type, texts of all sorts, times in order within a zone.
RandomFile random_file(uint32_t seed, size_t events, size_t chunk_bytes);

}  // namespace collect::wtf::testing
