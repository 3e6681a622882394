// What a session's writer is told of its streams beside their pages. On the writer thread.
#include <algorithm>

#include "daemon/ingest/session_pipe.h"

namespace collect::ingest {

// Records that were numbered and never came are lost for good: the stream's last word counts them.
// A repeated close is answered as the first one: that answer may have been lost with the link.
Status SessionPipe::close_stream(const storage::StreamEnd& end) {
  storage::StreamPosition& position = position_of(end.stream_id);
  if (!position.closed) COLLECT_TRY(writer_->close_stream(end));
  position.index_next = std::max(position.index_next, end.index_count);
  position.detail_next = std::max(position.detail_next, end.detail_count);
  position.closed = true;
  return {};
}

// Those of one stream that follow each other are one call.
Status SessionPipe::add_stalls(const ArrivedStalls& arrived) {
  std::vector<storage::Stall> of_stream;
  for (size_t at = 0; at < arrived.stalls.size();) {
    const uint32_t stream = arrived.stalls[at].stream_id;
    of_stream.clear();
    for (; at < arrived.stalls.size() && arrived.stalls[at].stream_id == stream; ++at) {
      of_stream.push_back(arrived.stalls[at].stall);
    }
    COLLECT_TRY(writer_->add_stalls(stream, of_stream));
  }
  stalls_next_ = std::max(stalls_next_, arrived.next_number);
  return {};
}

// To be changed: what moved is told in the next report.
storage::StreamPosition& SessionPipe::position_of(uint32_t stream) {
  touched_.insert(stream);
  storage::StreamPosition& position = positions_[stream];
  position.stream_id = stream;
  return position;
}

}  // namespace collect::ingest
