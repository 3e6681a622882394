#include "daemon/ingest/dial9_feed.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <random>
#include <utility>

#include "daemon/ingest/clock_fit.h"
#include "daemon/ingest/limits.h"

namespace collect::ingest {
namespace {

constexpr storage::ForeignKind kKind = storage::ForeignKind::kDial9;

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

// Nobody comes back for a feed's session, so it has no recording; its id is there to tell its
// containers from those of other sessions.
storage::SessionIdentity identity_of_feed(const std::string& peer) {
  storage::SessionIdentity identity;
  std::random_device random;
  for (uint8_t& byte : identity.process_id) byte = static_cast<uint8_t>(random());
  identity.process_name = storage::foreign_kind_name(kKind);
  identity.device_id = peer;
  identity.clock = atf::ClockType::kBoottime;
  identity.start_ns = boottime_ns();
  identity.start_unix_ns = storage::system_clock().unix_ns();
  return identity;
}

}  // namespace

Dial9Feed::Dial9Feed(IngestCore& core, asio::io_context& io, std::shared_ptr<Link> link)
    : core_(core), io_(io), link_(std::move(link)), decoder_(decoder_options()) {}

Dial9Feed::~Dial9Feed() = default;

void Dial9Feed::start() {
  open_session();
  last_read_ = std::chrono::steady_clock::now();
  std::vector<uint8_t> early = link_->take_early();
  received_ = base_ = early.size();
  core_.counters.bytes_received.fetch_add(early.size(), std::memory_order_relaxed);
  const bool holds = take(early);
  front_ = std::move(early);
  front_.resize(static_cast<size_t>(decoder_.whole_bytes()));
  hand_on();
  leave_buffer();
  if (holds) {
    asio::post(io_, [self = shared_from_this()] { self->read_turn(); });
  } else {
    end(storage::SessionState::kRecovered, text_of(*decoder_.problem()),
        text_of(*decoder_.problem()));
  }
}

// ---- the stream

void Dial9Feed::wait_readable() {
  state_ = State::kWaiting;
  link_->stream().wait_readable([self = shared_from_this()](const std::error_code& error) {
    if (self->state_ != State::kWaiting || error) return;
    self->state_ = State::kReading;
    self->read_turn();
  });
}

void Dial9Feed::resume() {
  if (state_ != State::kHeld && state_ != State::kNoBuffer) return;
  state_ = State::kReading;
  asio::post(io_, [self = shared_from_this()] { self->read_turn(); });
}

// Reads until the socket is empty, the queue is full or the turn is over.
void Dial9Feed::read_turn() {
  const auto self = shared_from_this();
  size_t turn_bytes = 0;
  while (state_ == State::kReading) {
    if (pipe_->full()) {
      core_.counters.reads_held.fetch_add(1, std::memory_order_relaxed);
      hand_on();
      state_ = State::kHeld;
      return;
    }
    if (!ensure_buffer()) {
      state_ = State::kNoBuffer;
      core_.buffers->wait([self] { asio::post(self->io_, [self] { self->resume(); }); });
      return;
    }
    std::error_code error;
    const auto room = asio::buffer(buffer_->data() + end_, kReadBufferBytes - end_);
    const size_t count = link_->stream().read_some(room, error);
    if (error == asio::error::would_block) {
      hand_on();
      let_go_of_buffer();
      wait_readable();
      return;
    }
    if (error) {
      on_stream_end(error);
      return;
    }
    const Bytes fresh(buffer_->data() + end_, count);
    end_ += count;
    received_ += count;
    turn_bytes += count;
    core_.counters.bytes_received.fetch_add(count, std::memory_order_relaxed);
    last_read_ = std::chrono::steady_clock::now();
    if (!take(fresh)) {
      const std::string problem = text_of(*decoder_.problem());
      end(storage::SessionState::kRecovered, problem, problem);
      return;
    }
    if (turn_bytes >= kReadTurnBytes) {
      asio::post(io_, [self] { self->read_turn(); });
      return;
    }
  }
}

// False: the stream is no dial9 from the decoder's whole_bytes() on.
bool Dial9Feed::take(Bytes fresh) {
  dial9::Visitor nobody;
  return decoder_.push(fresh, nobody) != dial9::DecodeState::kFailed;
}

bool Dial9Feed::ensure_buffer() {
  if (buffer_ && end_ < kReadBufferBytes) return true;
  if (buffer_) {
    hand_on();
    leave_buffer();
  }
  buffer_ = core_.buffers->acquire();
  return buffer_ != nullptr;
}

// Everything that has become whole goes to the writer.
void Dial9Feed::hand_on() {
  const uint64_t whole = decoder_.whole_bytes();
  if (whole == handed_) return;
  ForeignChunk chunk{.kind = kKind, .front = std::move(front_), .bytes = {}, .buffer = nullptr};
  front_ = {};
  const uint64_t from = std::max(handed_, base_);
  if (whole > from) {
    chunk.buffer = BufferPool::Buffer::lend(buffer_);
    chunk.bytes = Bytes(buffer_->data() + (from - base_), static_cast<size_t>(whole - from));
  }
  handed_ = whole;
  put(std::move(chunk));
}

// What is not whole yet stays in front_; of that, only what is not there already is copied.
void Dial9Feed::leave_buffer() {
  const Bytes rest = decoder_.rest();
  if (rest.size() > front_.size()) {
    front_.insert(front_.end(), rest.begin() + static_cast<ptrdiff_t>(front_.size()), rest.end());
  }
  buffer_.reset();
  base_ = received_;
  end_ = 0;
}

// As PageReader does: when others need buffers this one goes, else it is used again from its front
// when nobody looks at it.
void Dial9Feed::let_go_of_buffer() {
  if (core_.buffers->scarce()) {
    leave_buffer();
  } else if (decoder_.rest().empty() && buffer_->unshared()) {
    base_ = received_;
    end_ = 0;
  }
}

// A connection that is closed at a frame's end has said all that it wanted to say.
void Dial9Feed::on_stream_end(const std::error_code& error) {
  if (error != asio::error::eof) {
    end(storage::SessionState::kRecovered, "the connection broke: " + error.message(), "");
    return;
  }
  const auto problem = decoder_.finish();
  if (problem) {
    end(storage::SessionState::kRecovered, text_of(*problem), text_of(*problem));
  } else {
    end(storage::SessionState::kComplete, "", "");
  }
}

// `problem` may be empty where the stream was cut from outside: then it is about what is cut off.
void Dial9Feed::end(storage::SessionState state, const std::string& reason,
                    const std::string& problem) {
  if (state_ == State::kOver) return;
  hand_on();
  state_ = State::kOver;
  link_->close();
  buffer_.reset();
  front_ = {};
  ForeignEnd last{kKind, received_ - handed_, problem};
  if (last.refused_bytes != 0 && last.problem.empty()) {
    last.problem = "the frame at " + std::to_string(handed_) + " had not come whole: " + reason;
  }
  put(std::move(last));
  shown_.state = SessionState::kSealing;
  show(true);
  put(SessionSeal{state, reason});
}

void Dial9Feed::stop(std::function<void(Result<SessionSnapshot>)> done) {
  if (sealed_) {
    done(shown_);
    return;
  }
  when_sealed_.push_back(std::move(done));
  end(storage::SessionState::kComplete, "stopped by command", "");
}

void Dial9Feed::shut_down() {
  end(storage::SessionState::kRecovered, "collector stopped", "");
}

bool Dial9Feed::sweep(std::chrono::steady_clock::time_point now) {
  const auto self = shared_from_this();
  if (state_ == State::kHeld) resume();  // for want of budget, nobody else wakes it
  const bool is_idle = state_ == State::kWaiting && now - last_read_ > kSweepInterval;
  if (is_idle && buffer_) leave_buffer();
  if (is_idle && !decoder_.rest().empty() && now - last_read_ > kFrameStall) {
    end(storage::SessionState::kRecovered,
        "a frame came to a stop half-way, at " + std::to_string(received_), "");
  }
  // The manifest is not written for every change; when nothing more comes, it is made true.
  const bool is_settled = put_at_ + kSettleInterval < settled_at_;
  if (state_ != State::kOver && !is_settled && now - settled_at_ >= kSettleInterval) {
    settled_at_ = now;
    pipe_->push(CommitWanted{});
  }
  if (unshown_ && now - shown_at_ >= kProgressInterval) show(true);
  return !sealed_;
}

// ---- the session

void Dial9Feed::open_session() {
  const storage::SessionIdentity identity = identity_of_feed(link_->peer());
  shown_.process_name = identity.process_name;
  shown_.device_id = identity.device_id;
  shown_.start_time = std::chrono::system_clock::now();
  // Weak, because the feed holds the pipe and the pipe holds this.
  const auto on_report = [feed = weak_from_this()](SessionReport report) {
    if (const auto self = feed.lock()) self->on_report(std::move(report));
  };
  pipe_ = std::make_shared<SessionPipe>(core_.pipe_world, io_.get_executor(),
                                        core_.budget.account(link_->principal()), on_report);
  core_.live_sessions.fetch_add(1);
  put(SessionOpen{identity, std::nullopt});
}

void Dial9Feed::put(SessionItem item) {
  put_at_ = std::chrono::steady_clock::now();
  pipe_->push(std::move(item));
}

void Dial9Feed::on_report(SessionReport report) {
  if (report.opened) {
    opened_ = true;
    shown_.name = report.opened->name;
    shown_.directory = report.opened->directory;
    spdlog::info("a dial9 stream from {} goes into {}", link_->peer(), shown_.directory);
    show(true);
  }
  shown_.totals = report.totals;
  unshown_ = true;
  if (report.failed) {
    spdlog::error("a dial9 stream from {}: {}", link_->peer(), to_string(*report.failed));
    shown_.status = to_string(*report.failed);
    // Where the disk failed, the pipe seals by itself, and this seal comes too late.
    end(storage::SessionState::kFailed, to_string(*report.failed), "");
  }
  if (report.sealed) {
    on_sealed(*report.sealed);
    return;
  }
  if (std::chrono::steady_clock::now() - shown_at_ >= kProgressInterval) show(true);
  if (report.drained) resume();
}

void Dial9Feed::on_sealed(const SessionReport::Sealed& sealed) {
  const auto self = shared_from_this();
  sealed_ = true;
  shown_.state = shown_state(sealed.state);
  shown_.status = sealed.reason;
  shown_.health = sealed.health;
  shown_.end_time = std::chrono::system_clock::now();
  show(true);
  pipe_->report_to(sealed.held_up ? core_.late_seal(shown_) : nullptr);
  if (opened_) {
    spdlog::info("{} {}: {} bytes of dial9{}{}", shown_.name,
                 sealed.held_up ? "waits for room to be sealed" : "is sealed",
                 shown_.totals.stored_bytes, sealed.reason.empty() ? "" : ": ", sealed.reason);
  }
  core_.live_sessions.fetch_sub(1);
  const auto waiters = std::exchange(when_sealed_, {});
  for (const auto& done : waiters) done(shown_);
}

void Dial9Feed::show(bool now) {
  if (!opened_ || !now) {
    unshown_ = true;
    return;
  }
  unshown_ = false;
  shown_at_ = std::chrono::steady_clock::now();
  core_.observer.session_changed(shown_);
}

}  // namespace collect::ingest
