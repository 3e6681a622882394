#include "daemon/ingest/lane/agent_decoder.h"

#include <algorithm>

#include "daemon/ingest/link/limits.h"
#include "formats/core/crc32.h"
#include "proto/wire/codec_rules.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {
namespace {

bool decode(Bytes bytes, wire::Frame& frame, wire::Decoded& decoded) {
  decoded = wire::decode_frame(bytes, &crc32c, frame);
  return decoded.status == wire::DecodeStatus::kFrame;
}

}  // namespace

Status AgentDecoder::take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker,
                          LaneTurn& turn, size_t& taken) {
  LaneTurn decoded;
  const size_t page_bytes = decode_pages(bytes, decoded);
  if (session != nullptr && !pages_.empty()) {
    COLLECT_TRY(session->store(pages_, unpacker));
  }
  checked_bytes_ = 0;
  turn.end = decoded.end;
  turn.fault = std::move(decoded.fault);
  if (turn.fault == wire::frame_error_text(wire::FrameError::kPageChecksum)) {
    counters_.pages_bad_checksum.fetch_add(1, std::memory_order_relaxed);
  }
  turn.stored_bytes += decoded.stored_bytes;
  taken = page_bytes;
  if (turn.end == LaneTurn::End::kMore) taken += pass_on_frames(bytes.subspan(taken), turn);
  return {};
}

size_t AgentDecoder::decode_pages(Bytes bytes, LaneTurn& turn) {
  pages_.clear();
  size_t at = 0;
  wire::Frame frame;
  wire::Decoded decoded;
  while (turn.stored_bytes < kStoreTurnBytes && decode(bytes.subspan(at), frame, decoded)) {
    if (frame.type != wire::FrameType::kPage) return at;
    const Page page{frame.page, frame.page_bytes, {}};
    if (at >= checked_bytes_) turn.fault = fault_of(page);
    if (!turn.fault.empty()) break;
    at += frame.frame_bytes;
    checked_bytes_ = std::max(checked_bytes_, at);
    turn.stored_bytes += page.raw_bytes;
    pages_.push_back(page);
  }
  if (turn.fault.empty() && decoded.status == wire::DecodeStatus::kBad) {
    turn.fault = wire::frame_error_text(decoded.error);
  }
  if (!turn.fault.empty()) turn.end = LaneTurn::End::kFault;
  return at;
}

// Empty when the page may come now.
std::string AgentDecoder::fault_of(const Page& page) {
  if (!wire::is_agreed(page.codec, features_)) {
    return "page of codec " + std::to_string(static_cast<unsigned>(page.codec)) +
           ", which was not agreed on";
  }
  const auto stream = next_.find(page.stream_id);
  if (stream == next_.end()) {
    return "page of stream " + std::to_string(page.stream_id) + ", which is not open";
  }
  uint64_t& next = stream->second.of[static_cast<size_t>(page.lane)];
  if (page.first_seq < next) {
    return "page of stream " + std::to_string(page.stream_id) + " jumps back from record " +
           std::to_string(next) + " to " + std::to_string(page.first_seq);
  }
  next = page.first_seq + page.record_count;
  return {};
}

uint64_t AgentDecoder::next_seq(uint32_t stream, Lane lane) const {
  const auto known = next_.find(stream);
  return known == next_.end() ? 0 : known->second.of[static_cast<size_t>(lane)];
}

// Up to the next page: that may be of a stream that these frames open. So many at most, because
// each may open a stream, and the owner is asked between turns whether there may be more.
size_t AgentDecoder::pass_on_frames(Bytes bytes, LaneTurn& turn) {
  size_t at = 0;
  uint32_t count = 0;
  wire::Frame frame;
  wire::Decoded decoded;
  while (count < kFramesPerTurn && decode(bytes.subspan(at), frame, decoded) &&
         frame.type != wire::FrameType::kPage) {
    at += frame.frame_bytes;
    ++count;
  }
  if (at == 0) return 0;
  turn.frames.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(at));
  turn.end = LaneTurn::End::kFrames;
  return at;
}

}  // namespace collect::ingest
