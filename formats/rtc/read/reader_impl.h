// The inside of Reader: the walk over frames, what the special ones change, and the moves. Three
// sources share it: reader_frames.cc (frames and objects), reader_units.cc (Marker, Index, Meta,
// Crc, what is done after damage) and reader_seek.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/rtc/index_entries.h"
#include "formats/rtc/marker.h"
#include "formats/rtc/meta/meta.h"
#include "formats/rtc/meta/stream_table.h"
#include "formats/rtc/read/frame_starts.h"
#include "formats/rtc/read/reader.h"

namespace collect::rtc {

class Reader::Impl {
 public:
  Impl(Bytes file, const ReaderOptions& options) : file_(file), options_(options) {}

  enum class Step : uint8_t { kFrame, kObject, kEnd };

  Status open();
  Step step(Frame& frame, Object& object);
  bool next(Object& object);

  Result<uint64_t> seek_unit(uint64_t k);
  Result<uint64_t> seek_offset(uint64_t offset);
  Result<uint64_t> seek_time(int64_t time_ns, std::string_view clock);
  uint64_t unit_count() const;

  // Read by the public class.
  Bytes file_;
  ReaderOptions options_;
  StreamTable table_;
  Findings findings_;
  UnitInfo unit_;
  Geometry geometry_;
  SpecialFrames special_ = SpecialFrames::kFixed;
  Endian endian_ = Endian::kLittle;
  uint64_t pos_ = 0;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  uint64_t frames_ = 0;
  std::optional<Object> held_;  // found by seek_time, not yet given out

 private:
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  // What a frame's first bytes say.
  struct Header {
    uint64_t id = 0;
    bool more = false;
    size_t head_bytes = 0;
    size_t payload_bytes = 0;
    StreamState* stream = nullptr;
  };
  enum class Parsed : uint8_t { kFrame, kBad, kEnds };

  // reader_frames.cc
  Parsed parse(uint64_t at, Header& header);
  Parsed bad(Rule rule, std::string sentence);
  bool crosses_grid(uint64_t at, uint64_t id, uint64_t end);
  bool is_torn(uint64_t at, Header& header);
  void set_boundary();
  bool take(uint64_t at, const Header& header, Bytes payload, Object& object);
  void begin_object(StreamState& stream, uint64_t at);
  void add_fragment(StreamState& stream, Bytes payload, uint64_t at);
  void give(const StreamState& stream, Object& object) const;
  void tick(StreamState& stream, uint64_t at, Object& object);
  void drop(StreamState& stream, Rule rule, const char* why);
  void close(StreamState& stream);
  void drop_open_objects(const char* why);
  void end_of_file(uint64_t tail);

  // reader_units.cc
  void on_special(uint64_t at, const Header& header, Bytes payload);
  void on_whole_special(uint64_t id, uint64_t at, Bytes payload);
  void on_marker(uint64_t at);
  void on_index(uint64_t at, Bytes payload);
  void on_minor_index(uint64_t at, Bytes payload);
  void check_targets(uint64_t at, const IndexEntries& index, bool major);
  bool hits(uint64_t target, uint64_t id) const;
  void on_meta(uint64_t at, Bytes payload, bool delta);
  bool learn(Meta& meta, uint64_t at, bool delta, bool quiet);
  void on_crc(uint64_t at, Bytes payload);
  void detect_special(uint64_t behind_id);
  void begin_recording(bool clean);
  void lose_continuity(bool clean);
  void set_grid();
  void set_minor(uint64_t at);
  void end_unit(bool at_end_of_file);
  bool resync(uint64_t at);
  std::optional<uint64_t> next_credible_minor(uint64_t at) const;
  std::optional<uint64_t> next_credible_marker(uint64_t from);
  std::optional<uint64_t> next_marker_after_damage(uint64_t at);

  // reader_seek.cc
  std::optional<UnitHead> first_unit_from(uint64_t offset) const;
  std::optional<UnitHead> last_unit_until(uint64_t offset) const;
  void enter_unit(const UnitHead& head);
  void preview_meta(uint64_t index_end);
  void learn_deltas();
  bool next_meta_is_same() const;
  uint64_t enter_minor(uint64_t offset);
  std::optional<int64_t> first_tick(const std::string& clock, uint64_t until);
  std::string choose_clock() const;
  uint64_t search_units(Impl& probe, int64_t time_ns, const std::string& clock) const;
  uint64_t search_minors(Impl& probe, int64_t time_ns, const std::string& clock) const;

  uint64_t marker_ = kNowhere;      // of the Unit we are in
  uint64_t unit_end_ = kNowhere;    // where the next Marker should be
  uint64_t next_minor_ = kNowhere;  // where the next index should be
  uint64_t boundary_ = kNowhere;    // the nearer of the two
  std::optional<uint64_t> count_;
  bool after_crc_ = false;
  bool in_unit_ = false;
  bool finished_ = false;
  uint64_t epoch_ = 1;  // one more whenever continuity is lost
  bool clean_ = true;   // this epoch began with the first Unit of a recording
  Rule bad_rule_ = Rule::kFrame;
  std::string bad_sentence_;

  static constexpr size_t kMaxSkippedKept = 1024;
  std::vector<std::pair<uint64_t, uint64_t>> skipped_;  // bytes that were skipped, in order
  FrameStarts starts_;
  uint64_t ieee_until_ = 0;  // the checksums of the Unit up to here
  uint64_t published_until_ = 0;
  uint32_t ieee_ = 0;
  uint32_t published_ = 0;

  StreamState specials_[kFirstStreamId];  // Index, index, Meta and meta that are still open
  std::vector<uint8_t> last_meta_;        // the Meta that the table holds
  bool table_is_last_meta_ = false;       // and nothing else
  std::vector<StreamState*> open_;        // streams with an open object
  size_t open_fragments_ = 0;
  Bytes single_[1];
  std::vector<Bytes> completed_;  // fragments of the object that was given out last
  std::vector<uint8_t> gathered_;
  std::vector<uint8_t> special_payload_;
};

}  // namespace collect::rtc
