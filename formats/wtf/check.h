// Looks at every byte of a file of any form that we read: the summary that `collectctl inspect`
// shows and the findings that `collectctl verify` prints. It counts as the published viewer does:
// definitions and zone events are no events, events are put in time order within their zone, zones
// of equal name, type and location are one.
//
// One pass; a second one over the events of zones whose times step back, which are held (16 bytes
// an event) to be sorted. Other memory: distinct names and zones, all limited.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/wtf/binary/header.h"
#include "formats/wtf/finding.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/layout.h"
#include "formats/wtf/zone_report.h"

namespace collect::wtf {

enum class Grade : uint8_t {
  kOk,
  kRecovered,  // cut off, and whole up to there
  kDamaged,    // readable in part, but the file contradicts itself
  kRejected,   // nothing readable
};

std::string_view to_text(Grade grade);

struct FileReport {
  FileKind kind = FileKind::kUnknown;
  uint32_t format_version = 0;
  uint32_t tool_version = 0;
  uint64_t bytes = 0;
  uint64_t chunks = 0;  // 0 in legacy files
  std::optional<FileHeader> header;
  uint64_t event_types = 0;  // distinct names, those of scope#enter and timeStamp included
  uint64_t events = 0;
  std::optional<uint32_t> first_us, last_us;
  std::vector<ZoneReport> zones;
  uint64_t resources = 0;
  Findings findings;

  Grade grade = Grade::kRejected;
  // Whether the published viewer's library would load it, and whether it then has every event. Of
  // JSON events it has none, and PARTIAL mode it refuses. It takes the form from the file's name
  // (kJsonSuffix, kBinarySuffix).
  bool viewer_loads = false;
  bool viewer_has_events = false;
  JsonTotals json;  // of a JSON file
};

// `progress`, when given, is called now and then with the bytes looked at so far.
using Progress = void (*)(void* context, uint64_t bytes);
FileReport check_file(Bytes file, Progress progress = nullptr, void* context = nullptr);

}  // namespace collect::wtf
