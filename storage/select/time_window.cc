#include "storage/select/time_window.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "storage/manifest/manifest.h"

namespace collect::select {

Result<calls::Window> window_of(const WindowWords& words,
                                const std::function<SessionTimes()>& times) {
  calls::Window window;
  if (words.is_everything()) return window;
  const SessionTimes session = times();
  for (const auto& [option, text, end] : {std::tuple{"--from", &words.from, &window.first_ns},
                                          std::tuple{"--until", &words.until, &window.last_ns}}) {
    if (text->empty()) continue;
    const auto moment = parse_moment(*text, session);
    if (!moment.ok()) {
      return Error{moment.code(), fmt::format("{}: {}", option, moment.error().message)};
    }
    *end = *moment;
  }
  if (window.last_ns >= window.first_ns) return window;
  return Error{Code::kInvalidArgument, "--until is before --from"};
}

SessionTimes session_times(const atf::SessionReader& reader,
                           const std::optional<std::string>& manifest) {
  SessionTimes times;
  times.start_ns = UINT64_MAX;
  for (const atf::SessionThread& thread : reader.threads()) {
    if (!thread.index || thread.index->size() == 0) continue;
    times.start_ns = std::min(times.start_ns, thread.index->time_of(0));
  }
  if (times.start_ns == UINT64_MAX) times.start_ns = 0;
  if (!manifest) return times;
  const auto whole = storage::manifest_from_json(*manifest);
  if (!whole.ok()) return times;
  auto clock = TimeLine().add(*whole);
  if (clock.ok()) times.clock = std::move(*clock);
  return times;
}

}  // namespace collect::select
