#include "formats/calls/running_time.h"

#include <algorithm>

namespace collect::calls {
namespace {

__extension__ using UInt128 = unsigned __int128;

// `part` of `whole`, of `amount`.
uint64_t share(uint64_t amount, uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<uint64_t>(UInt128{amount} * part / whole);
}

}  // namespace

void RunningTime::add(uint64_t first_ns, uint64_t last_ns, const Stall& stall) {
  if (last_ns <= first_ns) return;
  const uint64_t stalled =
      share(stall.stalled_ns, last_ns - first_ns, stall.last_ns - stall.first_ns);
  pieces_.push_back({first_ns, last_ns, stalled, 0});
}

RunningTime::RunningTime(const std::vector<Stall>& stalls) {
  // Those of the whole process first: of the thread's own, only what is beside them counts.
  std::vector<Stall> sorted = stalls;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.is_of_process != b.is_of_process ? a.is_of_process : a.first_ns < b.first_ns;
  });
  size_t at = 0;
  for (; at < sorted.size() && sorted[at].is_of_process; ++at) {
    const uint64_t end_ns = pieces_.empty() ? 0 : pieces_.back().last_ns;
    add(std::max(sorted[at].first_ns, end_ns), sorted[at].last_ns, sorted[at]);
  }
  const size_t of_process = pieces_.size();
  size_t meets = 0;
  uint64_t own_end_ns = 0;
  for (; at < sorted.size(); ++at) {
    uint64_t begin_ns = std::max(sorted[at].first_ns, own_end_ns);
    const uint64_t end_ns = sorted[at].last_ns;
    own_end_ns = std::max(own_end_ns, end_ns);
    while (meets < of_process && pieces_[meets].last_ns <= begin_ns) ++meets;
    for (size_t i = meets; i < of_process && pieces_[i].first_ns < end_ns; ++i) {
      const Piece piece = pieces_[i];  // add() may move the pieces
      add(begin_ns, std::min(piece.first_ns, end_ns), sorted[at]);
      begin_ns = std::max(begin_ns, piece.last_ns);
    }
    add(begin_ns, end_ns, sorted[at]);
  }
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.first_ns < b.first_ns; });
  for (size_t i = 1; i < pieces_.size(); ++i) {
    pieces_[i].before_ns = pieces_[i - 1].before_ns + pieces_[i - 1].stalled_ns;
  }
}

void RunningTime::append(const Stall& stall) {
  const Piece last = pieces_.empty() ? Piece{} : pieces_.back();
  const size_t pieces = pieces_.size();
  add(std::max(stall.first_ns, last.last_ns), stall.last_ns, stall);
  if (pieces_.size() != pieces) pieces_.back().before_ns = last.before_ns + last.stalled_ns;
}

void RunningTime::forget_before(uint64_t ns) {
  (void)stalled_until(ns);
  if (next_ < 2) return;
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(next_ - 1));
  next_ = 1;
}

uint64_t RunningTime::stalled_until(uint64_t ns) {
  if (pieces_.empty()) return 0;
  const bool is_earlier = next_ != 0 && ns <= pieces_[next_ - 1].last_ns;
  if (is_earlier) {
    next_ = static_cast<size_t>(
        std::lower_bound(pieces_.begin(), pieces_.end(), ns,
                         [](const Piece& piece, uint64_t time) { return piece.last_ns < time; }) -
        pieces_.begin());
  }
  while (next_ < pieces_.size() && pieces_[next_].last_ns < ns) ++next_;
  if (next_ == pieces_.size()) return pieces_.back().before_ns + pieces_.back().stalled_ns;
  const Piece& piece = pieces_[next_];
  if (ns <= piece.first_ns) return piece.before_ns;
  return piece.before_ns +
         share(piece.stalled_ns, ns - piece.first_ns, piece.last_ns - piece.first_ns);
}

}  // namespace collect::calls
