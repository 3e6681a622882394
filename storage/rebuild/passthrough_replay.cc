#include "storage/rebuild/passthrough_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace collect::storage {
namespace {

// The five bytes of a header may be inside a value by chance: so many places are tried.
constexpr int kMaxHeaderTrials = 16;

dial9::StreamOptions frames_only() {
  dial9::StreamOptions options;
  options.pools = dial9::PoolStorage::kNone;
  return options;
}

}  // namespace

void PassthroughReplay::expect(uint64_t bytes) {
  if (!std::exchange(placed_, true)) done_ = bytes;
  if (bytes > done_) interrupted_ = true;
  next_ = bytes;
}

// Whether these are whole frames that belong behind what is stored.
bool PassthroughReplay::goes_on(Bytes bytes) {
  if (!decoder_) decoder_.emplace(frames_only());
  dial9::Visitor ignored;
  return decoder_->push(bytes, ignored) == dial9::DecodeState::kEnd;
}

// Where whole frames begin that need nothing before them.
std::optional<size_t> PassthroughReplay::begins_anew(Bytes bytes) {
  std::optional<size_t> at = dial9::find_header(bytes, 0);
  for (int trial = 0; at && trial < kMaxHeaderTrials; ++trial) {
    decoder_.emplace(frames_only());
    if (goes_on(bytes.subspan(*at))) return at;
    at = dial9::find_header(bytes, *at + 1);
  }
  return std::nullopt;
}

Result<std::optional<std::string>> PassthroughReplay::take(Session& writer, Bytes object) {
  const uint64_t place = next_;
  next_ += object.size();
  if (next_ <= done_) return std::optional<std::string>();  // from a container that was given twice
  const std::string bytes_at = fmt::format("{} bytes at {}", object.size(), place);
  done_ = next_;
  size_t from = 0;
  if (interrupted_ || !goes_on(object)) {
    const auto header = begins_anew(object);
    interrupted_ = !header;
    if (!header) {
      return std::optional(bytes_at +
                           " of the stream can't be used without what is missing before");
    }
    from = *header;
  }
  const Bytes bytes = object.subspan(from);
  COLLECT_TRY(writer.append_passthrough(kind_, {&bytes, 1}));
  stored_ += bytes.size();
  if (from == 0) return std::optional<std::string>();
  return std::optional(
      fmt::format("of {} of the stream the first {} can't be used without what is missing before",
                  bytes_at, from));
}

Result<std::optional<std::string>> PassthroughReplay::finish(Session& writer,
                                                             const PassthroughStream& last) {
  const uint64_t was = std::max(last.bytes, next_);
  const uint64_t missing = was - std::min(stored_, was);
  std::string sentence = last.problem;
  if (missing != 0) {
    sentence += fmt::format(
        "{}{} bytes of the stream are not in the containers, or of no use without the others",
        sentence.empty() ? "" : "; ", missing);
  }
  COLLECT_TRY(writer.end_passthrough(kind_, last.refused_bytes + missing, sentence));
  if (missing == 0) return std::optional<std::string>();
  return std::optional(sentence);
}

}  // namespace collect::storage
