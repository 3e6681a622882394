#include "daemon/ingest/lane/feed_decoder.h"

#include <algorithm>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

dial9::StreamOptions decoder_options() {
  dial9::StreamOptions options;
  options.pools = dial9::PoolStorage::kNone;
  options.max_frame_bytes = kMaxFeedFrameBytes;
  options.max_state_bytes = kMaxFeedStateBytes;
  return options;
}

std::string text_of(const dial9::Problem& problem) {
  return "dial9: " + std::string(dial9::rule_name(problem.rule)) + ": " +
         dial9::to_error(problem).message;
}

}  // namespace

FeedDecoder::FeedDecoder() : decoder_(decoder_options()) {}

Status FeedDecoder::take(Bytes bytes, StoredSession* session, PageUnpacker& /*unpacker*/,
                         LaneTurn& turn, size_t& taken) {
  const Bytes fresh = bytes.subspan(decoded_bytes_);
  dial9::Visitor nobody;
  const bool is_dial9 = decoder_.push(fresh, nobody) != dial9::DecodeState::kFailed;
  received_ += fresh.size();
  decoded_bytes_ = bytes.size();
  const uint64_t whole = decoder_.whole_bytes();
  const uint64_t base = received_ - bytes.size();                          // of `bytes`
  const auto done = static_cast<size_t>(whole > base ? whole - base : 0);  // of `bytes`
  if (session != nullptr && whole > stored_) {
    const size_t in_front = static_cast<size_t>(std::min<uint64_t>(base, whole) - stored_);
    const Bytes parts[] = {Bytes(front_).first(in_front), bytes.first(done)};
    COLLECT_TRY(session->store_passthrough(storage::PassthroughKind::kDial9, parts));
    front_.erase(front_.begin(), front_.begin() + static_cast<ptrdiff_t>(in_front));
    stored_ = whole;
  }
  if (session != nullptr && is_dial9)
    front_.insert(front_.end(), bytes.begin() + static_cast<ptrdiff_t>(done), bytes.end());
  if (front_.empty()) front_ = {};
  decoded_bytes_ = 0;
  taken = bytes.size();
  turn.stored_bytes += bytes.size();
  if (!is_dial9) {
    turn.end = LaneTurn::End::kFault;
    turn.fault = text_of(*decoder_.problem());
  }
  return {};
}

std::optional<std::string> FeedDecoder::finish() {
  const auto problem = decoder_.finish();
  if (!problem) return std::nullopt;
  return text_of(*problem);
}

}  // namespace collect::ingest
