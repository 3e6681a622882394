// The tracks of a trace, by what its descriptors say and what its events use. A track is given a
// number of the sink with its first event; whose it is, is said when all has been read, for
// descriptors may come late.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "formats/core/bytes.h"
#include "formats/core/timeline/timeline_sink.h"

namespace collect::perfetto {

class TrackTable {
 public:
  explicit TrackTable(TimelineSink& sink) : sink_(sink) {}

  // By its uuid; the one that events of a sequence are on which name none, by that of the sequence.
  struct Key {
    uint32_t sequence = 0;
    uint64_t uuid = 0;
    auto operator<=>(const Key&) const = default;
  };

  // A TrackDescriptor. False: it is no message.
  bool describe(Bytes message);
  // A ThreadDescriptor, of the events of a sequence that name no track.
  bool describe_thread(uint32_t sequence, Bytes message);
  // For an event.
  uint32_t number_of(Key key);
  // Says what is known of each track that has a number.
  void finish();

 private:
  struct Track {
    uint64_t parent = 0;
    bool has_parent = false;
    bool has_pid = false;
    uint32_t pid = 0;
    uint32_t tid = 0;
    std::string name;
    uint32_t number = TimelineSink::kNone;
    bool is_numbered = false;
  };

  Track* track_of(Key key);
  bool take_thread(Bytes message, Track& track);
  bool take_process(Bytes message, Track& track);
  void keep(std::string& to, std::string_view text);
  const Track* with_pid(const Track& track) const;
  uint32_t process_of(uint32_t pid);

  TimelineSink& sink_;
  std::map<Key, Track> tracks_;
  std::map<uint32_t, std::string> process_names_;
  std::map<uint32_t, uint32_t> processes_;  // as the sink numbers them, by pid
  size_t name_bytes_ = 0;
};

}  // namespace collect::perfetto
