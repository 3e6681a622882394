#include "daemon/ingest/lane/dial9_feed.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <utility>

#include "daemon/ingest/clock/clock_fit.h"
#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

constexpr storage::PassthroughKind kKind = storage::PassthroughKind::kDial9;

// No one comes back for a feed's session, so it has no recording; its id is there to tell its
// containers from those of other sessions.
storage::SessionIdentity identity_of_feed(const std::string& peer) {
  storage::SessionIdentity identity;
  std::random_device random;
  for (uint8_t& byte : identity.process_id) byte = static_cast<uint8_t>(random());
  identity.process_name = storage::passthrough_kind_name(kKind);
  identity.device_id = peer;
  identity.clock = atf::ClockType::kBoottime;
  identity.start_ns = boottime_ns();
  identity.start_unix_ns = storage::system_clock().unix_ns();
  return identity;
}

dial9::StreamOptions decoder_options() {
  dial9::StreamOptions options;
  options.pools = dial9::PoolStorage::kNone;
  options.max_frame_bytes = kMaxFeedFrameBytes;
  options.max_state_bytes = kMaxFeedStateBytes;
  return options;
}

std::string text_of(const dial9::Problem& problem) {
  return fmt::format("dial9: {}: {}", dial9::rule_name(problem.rule),
                     dial9::to_error(problem).message);
}

}  // namespace

// ---- the bytes

FeedDecoder::FeedDecoder() : decoder_(decoder_options()) {}

Status FeedDecoder::take(Bytes bytes, StoredSession* session, PageUnpacker& /*unpacker*/,
                         LaneTurn& turn, size_t& taken) {
  const Bytes fresh = bytes.subspan(decoded_bytes_);
  dial9::Visitor ignored;
  const bool is_dial9 = decoder_.push(fresh, ignored) != dial9::DecodeState::kFailed;
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
    turn.fault = violation(text_of(*decoder_.problem()));
  }
  return {};
}

std::optional<std::string> FeedDecoder::finish() {
  const auto problem = decoder_.finish();
  if (!problem) return std::nullopt;
  return text_of(*problem);
}

// ---- the feed

Dial9Feed::Dial9Feed(IngestCore& core, asio::io_context& io, std::shared_ptr<Link> link)
    : core_(core),
      io_(io),
      peer_(link->peer()),
      principal_(link->principal()),
      link_(std::move(link)),
      decoder_(std::make_shared<FeedDecoder>()) {}

Dial9Feed::~Dial9Feed() = default;

void Dial9Feed::start() {
  const storage::SessionIdentity identity = identity_of_feed(peer_);
  // Weak, because the feed holds the queue and the queue holds this.
  session_ = std::make_unique<LiveSession>(core_, io_, core_.budget.account(principal_),
                                           [feed = weak_from_this()](const SessionReport& report) {
                                             if (const auto self = feed.lock())
                                               self->on_report(report);
                                           });
  session_->shown.process_name = identity.process_name;
  session_->shown.device_id = identity.device_id;
  session_->shown.start_time = std::chrono::system_clock::now();
  session_->push(
      [identity](StoredSession& session) { return session.open(identity, std::nullopt); });
  lane_ = std::make_shared<DataLane>(io_, std::exchange(link_, nullptr), shared_from_this(),
                                     decoder_, core_.lane_buffers, core_.counters);
  lane_->store_into(session_->queue);
  lane_->start();
}

void Dial9Feed::on_data_fault(const Refusal& fault) {
  end(storage::SessionState::kRecovered, fault.reason, fault.reason);
}

// A connection that is closed at a frame's end has said all that it wanted to say.
void Dial9Feed::on_data_end(const std::error_code& error) {
  if (error != asio::error::eof) {
    end(storage::SessionState::kRecovered, "the connection broke: " + error.message(), "");
    return;
  }
  const auto problem = decoder_->finish();
  if (problem) {
    end(storage::SessionState::kRecovered, *problem, *problem);
  } else {
    end(storage::SessionState::kComplete, "", "");
  }
}

// `problem` may be empty where the stream was cut from outside: then it is about what is cut off.
void Dial9Feed::end(storage::SessionState state, const std::string& reason,
                    const std::string& problem) {
  if (std::exchange(ended_, true)) return;
  lane_->end([self = shared_from_this(), state, reason, problem](Link& link) {
    link.close();
    const uint64_t refused = self->decoder_->received_bytes() - self->decoder_->stored_bytes();
    std::string text = problem;
    if (refused != 0 && text.empty()) {
      text = fmt::format("the frame at {} had not come whole: {}", self->decoder_->stored_bytes(),
                         reason);
    }
    self->session_->push([refused, text](StoredSession& session) {
      return session.writer().end_passthrough(kKind, refused, text);
    });
    self->session_->seal(state, reason);
  });
}

void Dial9Feed::stop(Answer<SessionSnapshot> done) {
  if (sealed_) {
    done(session_->shown);
    return;
  }
  session_->when_sealed.push_back(std::move(done));
  end(storage::SessionState::kComplete, "stopped by command", "");
}

void Dial9Feed::shut_down() {
  end(storage::SessionState::kRecovered, "collector stopped", "");
}

bool Dial9Feed::sweep(SteadyTime now) {
  const auto self = shared_from_this();
  if (!ended_ && !lane_->check_idle(now)) {
    end(storage::SessionState::kRecovered,
        fmt::format("a frame came to a stop half-way, at {}", decoder_->received_bytes()), "");
  }
  if (!ended_) session_->commit_when_settled(now);
  session_->sweep(now);
  return !sealed_;
}

void Dial9Feed::on_report(const SessionReport& report) {
  session_->take(report);
  if (report.opened) {
    spdlog::info("a dial9 stream from {} goes into {}", peer_, session_->shown.directory);
  }
  if (report.failed) {
    spdlog::error("a dial9 stream from {}: {}", peer_, to_string(*report.failed));
    session_->shown.status = to_string(*report.failed);
    // Where the disk failed, the queue seals by itself, and this seal comes too late.
    end(storage::SessionState::kFailed, to_string(*report.failed), "");
  }
  if (report.sealed) {
    on_sealed(*report.sealed);
  } else {
    session_->sweep(std::chrono::steady_clock::now());
  }
}

void Dial9Feed::on_sealed(const SessionReport::Sealed& sealed) {
  const auto self = shared_from_this();
  sealed_ = true;
  session_->take_sealed(sealed);
  const SessionSnapshot& shown = session_->shown;
  if (session_->opened) {
    spdlog::info("{} {}: {} bytes of dial9{}{}", shown.name,
                 sealed.deferred ? "waits for room to be sealed" : "is sealed",
                 shown.totals.stored_bytes, sealed.reason.empty() ? "" : ": ", sealed.reason);
  }
  core_.live_sessions.fetch_sub(1);
  const auto waiters = std::exchange(session_->when_sealed, {});
  for (const auto& done : waiters) done(shown);
}

}  // namespace collect::ingest
