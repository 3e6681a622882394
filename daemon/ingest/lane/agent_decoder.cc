#include "daemon/ingest/lane/agent_decoder.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/ingest/link/limits.h"
#include "formats/core/crc32.h"
#include "proto/wire/codec_rules.h"

namespace collect::ingest {
namespace {

void refuse(Refusal fault, LaneTurn& turn) {
  turn.end = LaneTurn::End::kFault;
  turn.fault = std::move(fault);
}

}  // namespace

Status AgentDecoder::take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker,
                          LaneTurn& turn, size_t& taken) {
  COLLECT_TRY(frames_.store(session));
  while (turn.end == LaneTurn::End::kMore && !turn.is_full()) {
    const Run run = decode_pages(bytes.subspan(taken), kStoreTurnBytes - turn.stored_bytes);
    if (session != nullptr && !pages_.empty()) COLLECT_TRY(session->store(pages_, unpacker));
    checked_bytes_ = 0;
    taken += run.bytes;
    turn.stored_bytes += run.records_bytes;
    if (run.fault == wire::frame_error_text(wire::FrameError::kPageChecksum)) {
      counters_.pages_bad_checksum.fetch_add(1, std::memory_order_relaxed);
    }
    if (!run.fault.empty()) {
      refuse(violation(run.fault), turn);
      break;
    }
    if (!run.frame) break;
    taken += run.frame->frame_bytes;
    ++turn.frames;
    take_frame(*run.frame, session, turn);
    COLLECT_TRY(frames_.store(session));
  }
  return {};
}

void AgentDecoder::take_frame(const wire::Frame& frame, StoredSession* session, LaneTurn& turn) {
  switch (frame.type) {
    case wire::FrameType::kRecordingStart:
    case wire::FrameType::kRecordingEnd:
    case wire::FrameType::kRefuse:
      turn.end = LaneTurn::End::kFrame;
      turn.frame_type = frame.type;
      turn.frame_body.assign(frame.body.begin(), frame.body.end());
      return;
    default:
      if (Verdict verdict = frames_.take(frame, session)) refuse(std::move(*verdict), turn);
  }
}

AgentDecoder::Run AgentDecoder::decode_pages(Bytes bytes, size_t room) {
  pages_.clear();
  Run run;
  while (run.records_bytes < room) {
    wire::Frame frame;
    const wire::Decoded decoded = wire::decode_frame(bytes.subspan(run.bytes), &crc32c, frame);
    if (decoded.status == wire::DecodeStatus::kBad) {
      run.fault = wire::frame_error_text(decoded.error);
    }
    if (decoded.status != wire::DecodeStatus::kFrame) break;
    if (frame.type != wire::FrameType::kPage) {
      run.frame = frame;
      break;
    }
    const Page page{frame.page, frame.page_bytes, {}};
    if (run.bytes >= checked_bytes_) run.fault = fault_of(page);
    if (!run.fault.empty()) break;
    run.bytes += frame.frame_bytes;
    checked_bytes_ = std::max(checked_bytes_, run.bytes);
    run.records_bytes += page.raw_bytes;
    pages_.push_back(page);
  }
  return run;
}

// Empty when the page may come now.
std::string AgentDecoder::fault_of(const Page& page) {
  if (wire::is_agreed(page.codec, features_)) return frames_.fault_of(page);
  return fmt::format("page of codec {}, which was not agreed on",
                     static_cast<unsigned>(page.codec));
}

}  // namespace collect::ingest
