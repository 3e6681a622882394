#include "daemon/ingest/session/rate_watch.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "formats/core/bytes.h"

namespace collect::ingest {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

RateWatch::RateWatch(atf::Version version, uint32_t max_rate)
    : version_(version),
      most_calls_((uint64_t{max_rate} << kPieceBits) / kSecond),
      slots_(kFirstSlots) {}

void RateWatch::look_at(const Page& page, uint64_t known) {
  for (uint64_t i = known; i < page.record_count; ++i) {
    const uint8_t* const event = page.bytes.data() + i * atf::kEventBytes;
    const auto kind =
        version_ == atf::Version::kV1
            ? static_cast<atf::EventKind>(
                  load_le<uint32_t>(event + offsetof(atf::IndexEventV1, event_kind)))
            : static_cast<atf::EventKind>(event[offsetof(atf::IndexEventV2, event_kind)]);
    if (kind != atf::EventKind::kCall) continue;
    const auto id = load_le<uint64_t>(event + offsetof(atf::IndexEventV2, function_id));
    count(slot_of(id), load_le<uint64_t>(event));
  }
}

void RateWatch::count(Slot& slot, uint64_t at_ns) {
  const uint64_t piece_number = at_ns >> kPieceBits;
  Piece& piece = slot.pieces[piece_number % kPieces];
  if (piece.calls == 0 || piece.first_ns >> kPieceBits < piece_number) {
    piece = {at_ns, 0};
  } else if (piece.first_ns >> kPieceBits > piece_number) {
    return;  // later than kPieces
  }
  piece.first_ns = std::min(piece.first_ns, at_ns);
  if (piece.calls > most_calls_) return;  // found already
  if (++piece.calls <= most_calls_ || hot_.size() == kMaxHotFunctions) return;
  const uint64_t took_ns = std::max<uint64_t>(at_ns - piece.first_ns, 1);
  // Fits: there are at most 1.1e9 calls in a piece.
  hot_.push_back({slot.function_id, uint64_t{piece.calls} * kSecond / took_ns});
}

std::vector<HotFunction> RateWatch::take() {
  return std::exchange(hot_, {});
}

size_t RateWatch::find(uint64_t function_id) const {
  size_t at = keyed_hash(key_, function_id) & (slots_.size() - 1);
  while (slots_[at].is_used && slots_[at].function_id != function_id) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

RateWatch::Slot& RateWatch::slot_of(uint64_t function_id) {
  size_t at = find(function_id);
  if (!slots_[at].is_used) {
    if (2 * (used_ + 1) > slots_.size()) {
      make_room();
      at = find(function_id);
    }
    slots_[at] = {function_id, {}, true};
    ++used_;
  }
  return slots_[at];
}

void RateWatch::make_room() {
  const std::vector<Slot> old = std::exchange(slots_, {});
  if (used_ == kMaxRatedFunctions) {
    slots_.resize(old.size());
    used_ = 0;
    return;
  }
  slots_.resize(2 * old.size());
  for (const Slot& slot : old) {
    if (slot.is_used) slots_[find(slot.function_id)] = slot;
  }
}

}  // namespace collect::ingest
