// The server's side of one call, for handlers that answer later. gRPC may cancel while the
// collector answers and while the server shuts down; the first of them to claim a call finishes it,
// so that each is finished exactly once, and what the others say is dropped.
//
// A call owns itself until OnDone; callbacks that come even later hold it by shared_ptr. Messages
// meet gRPC as bytes, so that its templates are compiled once and not for each method. Internal to
// daemon/control: this header pulls in gRPC.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/core/result.h"

namespace collect::control {

inline constexpr size_t kMaxLiveWatches = 1024;  // of all clients together

grpc::Status to_grpc_status(const Error& error);

using MessageStream = grpc::ServerWriteReactor<grpc::ByteBuffer>;

// Not ok: no message of gRPC can hold it.
grpc::Status write_message(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes);
// False: the bytes are no such message.
bool read_message(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);

// The calls that have not ended, and the means to end the endless ones among them.
class LiveCalls {
 public:
  using EndWatch = std::function<void()>;

  // A watch is about to run. Returns 0 when the server is closing or has too many.
  uint64_t add_watch(EndWatch end);
  void remove_watch(uint64_t id);
  void enter();
  void leave();

  bool closing() const;
  void end_watches();  // and admits no new ones
  // Until every call has ended; at most so long.
  void wait_until_idle(std::chrono::milliseconds bound);
  void wait_until_idle();

 private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::unordered_map<uint64_t, EndWatch> watches_;
  uint64_t last_id_ = 0;
  size_t calls_ = 0;
  bool closing_ = false;
};

// What each call has, of gRPC's `Reactor` for its kind: it is one of the live calls and owns itself
// from enter() to OnDone, and it is finished once.
//
// Any thread ends it: the collector's, gRPC's, the one that closes the server. gRPC runs our
// reactions on its own threads, never inside Finish or StartWrite: both may be called under the
// lock, which keeps a write from following the end. OnDone may come on another thread before Finish
// returns, so the caller that ends a call holds it by shared_ptr, or is one of its reactions.
template <class Reactor>
class LiveCall : public Reactor, public std::enable_shared_from_this<LiveCall<Reactor>> {
 public:
  void end_now(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    finish_locked(std::move(status));
  }

 protected:
  LiveCall(std::shared_ptr<LiveCalls> live, const char* at_cancel)
      : live_(std::move(live)), at_cancel_(at_cancel) {}

  void enter() {
    live_->enter();
    self_ = this->shared_from_this();
  }
  // An endless one: the server ends it too. False: it is closing or has too many.
  bool enter_watches(const char* at_shutdown) {
    watch_id_ = live_->add_watch([weak = this->weak_from_this(), at_shutdown] {
      if (const auto call = weak.lock()) {
        call->end_at_shutdown({grpc::StatusCode::UNAVAILABLE, at_shutdown});
      }
    });
    return watch_id_ != 0;
  }
  bool server_closes() const { return live_->closing(); }

  void finish_locked(grpc::Status status) {
    if (finished_) return;
    finished_ = true;
    this->Finish(std::move(status));
  }

  mutable std::mutex mutex_;
  bool finished_ = false;  // under mutex_

 private:
  virtual void end_at_shutdown(grpc::Status status) { end_now(std::move(status)); }
  virtual void done() {}  // in OnDone

  void OnCancel() override { end_now({grpc::StatusCode::CANCELLED, at_cancel_}); }

  void OnDone() override {
    std::shared_ptr<LiveCall> self;
    {
      const std::lock_guard lock(mutex_);  // behind its ending, which may still be in Finish
      self = std::move(self_);
    }
    if (watch_id_ != 0) live_->remove_watch(watch_id_);
    done();
    live_->leave();
  }

  // Constant once the handler has returned.
  const std::shared_ptr<LiveCalls> live_;
  const char* const at_cancel_;
  uint64_t watch_id_ = 0;
  std::shared_ptr<LiveCall> self_;  // until OnDone
};

// A call with one answer.
class UnaryCall final : public LiveCall<grpc::ServerUnaryReactor> {
 public:
  // `response` is gRPC's, and stays valid until Finish.
  static std::shared_ptr<UnaryCall> open(std::shared_ptr<LiveCalls> live,
                                         grpc::ByteBuffer* response) {
    std::shared_ptr<UnaryCall> call(new UnaryCall(std::move(live), response));
    call->enter();
    return call;
  }

  void answer(const google::protobuf::MessageLite& message) {
    const std::lock_guard lock(mutex_);
    if (!finished_) finish_locked(write_message(message, *response_));
  }
  void fail(const Error& error) { end_now(to_grpc_status(error)); }

 private:
  UnaryCall(std::shared_ptr<LiveCalls> live, grpc::ByteBuffer* response)
      : LiveCall(std::move(live), "the client or the server gave up waiting"),
        response_(response) {}

  grpc::ByteBuffer* const response_;  // under mutex_, until it is finished
};

inline constexpr char kClientWentAway[] = "the client went away";

// A stream of messages that ends when the client, the server or what is watched ends. `Backlog`
// holds what the client has not taken yet (watch_backlog.h).
template <class Backlog>
class WatchCall final : public LiveCall<MessageStream> {
 public:
  // `at_shutdown`: what the client is informed when the server ends it.
  static std::shared_ptr<WatchCall> open(
      std::shared_ptr<LiveCalls> live,
      const char* at_shutdown = "the collector is shutting down; watch again when it is back") {
    std::shared_ptr<WatchCall> call(new WatchCall(std::move(live)));
    call->enter();
    if (!call->enter_watches(at_shutdown)) {
      call->end_now(
          call->server_closes()
              ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the collector is shutting down")
              : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                             "too many watches run already; end some of them"));
    }
    return call;
  }

  bool ended() const {
    const std::lock_guard lock(mutex_);
    return finished_ || end_wanted_;
  }

  // What lets go of the source of messages. Set before the handler returns, called in OnDone.
  void set_release(std::function<void()> release) { release_ = std::move(release); }

  // Runs `change(backlog)` unless the watch has ended, then sends what waits.
  template <class Change>
  void update(Change&& change) {
    const std::lock_guard lock(mutex_);
    if (finished_ || end_wanted_) return;
    change(backlog_);
    if (backlog_.overflowed()) {
      finish_locked({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "this client reads too slowly; watch again for the present state"});
      return;
    }
    send_locked();
  }

  // Ends after everything that waits was sent.
  void end_when_sent(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (finished_ || end_wanted_) return;
    end_wanted_ = true;
    end_status_ = std::move(status);
    send_locked();
  }

 private:
  explicit WatchCall(std::shared_ptr<LiveCalls> live)
      : LiveCall(std::move(live), kClientWentAway) {}

  void end_at_shutdown(grpc::Status status) override { end_when_sent(std::move(status)); }
  void done() override {
    if (release_) release_();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) {
      finish_locked({grpc::StatusCode::CANCELLED, kClientWentAway});
      return;
    }
    send_locked();
  }

  void send_locked() {
    if (finished_ || writing_) return;
    if (!backlog_.empty()) {
      grpc::Status written = write_message(backlog_.take(), current_);
      if (!written.ok()) return finish_locked(std::move(written));
      writing_ = true;
      this->StartWrite(&current_);
      return;
    }
    if (end_wanted_) finish_locked(std::move(end_status_));
  }

  std::function<void()> release_;  // constant once the handler has returned

  // Under mutex_.
  Backlog backlog_;
  grpc::ByteBuffer current_;  // gRPC reads it while writing_
  bool writing_ = false;
  bool end_wanted_ = false;
  grpc::Status end_status_;
};

}  // namespace collect::control
