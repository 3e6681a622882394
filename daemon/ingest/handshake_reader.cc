#include "daemon/ingest/handshake_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <asio/post.hpp>
#include <iterator>

#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/link/limits.h"
#include "formats/dial9/layout.h"

namespace collect::ingest {

std::weak_ptr<HandshakeReader> HandshakeReader::wait(IngestCore& core, std::shared_ptr<Link> link,
                                                     OnHello on_hello, OnFailure on_failure,
                                                     OnFeed on_feed, std::string user_refusal) {
  const auto reader = std::make_shared<HandshakeReader>(core, std::move(link), std::move(on_hello),
                                                        std::move(on_failure), std::move(on_feed),
                                                        std::move(user_refusal));
  reader->start();
  return reader;
}

HandshakeReader::HandshakeReader(IngestCore& core, std::shared_ptr<Link> link, OnHello on_hello,
                                 OnFailure on_failure, OnFeed on_feed, std::string user_refusal)
    : core_(core),
      link_(std::move(link)),
      on_hello_(std::move(on_hello)),
      on_failure_(std::move(on_failure)),
      on_feed_(std::move(on_feed)),
      user_refusal_(std::move(user_refusal)),
      deadline_(link_->socket().get_executor(), kHelloDeadline) {}

void HandshakeReader::start() {
  const auto self = shared_from_this();
  link_->set_owner(self);
  deadline_.async_wait([self](const std::error_code&) {
    if (!self->link_) return;  // it was decided, and perhaps cancelled too late
    self->refuse(wire::REFUSE_PROTOCOL,
                 fmt::format("no {} within {} s", self->challenged_ ? "proof" : "hello",
                             kHelloDeadline.count() / 1000),
                 true);
  });
  if (link_->stream().is_ready()) {
    link_->read_control_frames();
  } else {
    link_->stream().handshake([self, link = link_](const std::string& fault) {
      if (self->link_) self->on_handshake(fault);
    });
  }
}

// The peer gets no more than the alert that TLS itself has sent.
void HandshakeReader::on_handshake(const std::string& fault) {
  if (fault.empty()) {
    if (std::string shown = link_->stream().certificate_sha256(); !shown.empty()) {
      link_->set_principal({principal::Principal::Kind::kCertificate, std::move(shown)});
    }
    link_->read_control_frames();
  } else {
    refuse(wire::REFUSE_PROTOCOL, fault, true);
  }
}

void HandshakeReader::finish() {
  deadline_.cancel();
  link_.reset();
  lease_.reset();
}

void HandshakeReader::refuse(wire::RefuseCode code, const std::string& reason, bool retry) {
  const std::shared_ptr<Link> link = link_;
  finish();
  core_.refused(link->peer(), reason);
  link->refuse(code, reason, retry);
  on_failure_(reason, code);
}

void HandshakeReader::evict(const std::string& reason) {
  if (!link_) return;
  const std::shared_ptr<Link> link = link_;
  finish();
  core_.refused(link->peer(), reason);
  link->close();
  on_failure_(reason, refused_);
}

void HandshakeReader::on_frame(Link& link, const wire::Frame& frame) {
  if (!link_) return;
  if (frame.type == wire::FrameType::kRefuse) {
    const Result<wire::Refuse> refusal = parse_body<wire::Refuse>(frame);
    if (refusal.ok()) refused_ = refusal->code();
    link.fail("refused by the agent: " + (refusal.ok() ? refusal->reason() : "without a reason"));
    return;
  }
  if (challenged_) {
    on_proof(frame);
  } else {
    on_hello(link, frame);
  }
}

void HandshakeReader::on_hello(Link& link, const wire::Frame& frame) {
  if (frame.type != wire::FrameType::kHello) {
    refuse(wire::REFUSE_PROTOCOL,
           fmt::format("the first frame has type {} and is no hello",
                       static_cast<unsigned>(frame.type)),
           true);
    return;
  }
  const Result<wire::Hello> hello = parse_body<wire::Hello>(frame);
  if (!hello.ok()) {
    refuse(wire::REFUSE_PROTOCOL, hello.error().message, true);
    return;
  }
  if (const auto refusal = check_untrusted_hello(*hello)) {
    refuse(refusal->code, refusal->reason, refusal->retry);
    return;
  }
  const auto context = begin_proofs(*hello, on_feed_ == nullptr);
  if (!context) {
    const Refusal refusal = no_randomness();
    refuse(refusal.code, refusal.reason, refusal.retry);
    return;
  }
  checked_ = {*hello, *context, {}};
  token_ = core_.token();
  // Where no token is needed, the guest token is proved to agents that have it, and not asked for.
  if (token_.empty() && on_feed_ != nullptr) token_ = core_.options.guest_token;
  challenged_ = true;
  link.send(wire::FrameType::kChallenge,
            challenge_for(*context, token_, core_.options.storage.collector));
}

void HandshakeReader::on_proof(const wire::Frame& frame) {
  if (frame.type != wire::FrameType::kProof) {
    refuse(wire::REFUSE_PROTOCOL,
           fmt::format("the frame after the hello has type {} and is no proof",
                       static_cast<unsigned>(frame.type)),
           true);
    return;
  }
  const Result<wire::Proof> proof = parse_body<wire::Proof>(frame);
  if (!proof.ok()) {
    refuse(wire::REFUSE_PROTOCOL, proof.error().message, true);
    return;
  }
  const bool is_asked = !user_refusal_.empty() || !core_.token().empty();
  if (auto refusal = check_token(*proof, checked_.context, is_asked ? token_ : "")) {
    if (!user_refusal_.empty()) {
      refusal = Refusal{wire::REFUSE_PRINCIPAL, user_refusal_, false};
    }
    refuse(refusal->code, refusal->reason, refusal->retry);
    return;
  }
  checked_.resume_proof = proof->resume_proof();
  const std::shared_ptr<Link> checked = link_;
  finish();
  checked->set_owner(nullptr);  // so that it stops reading behind this frame
  // Not from here: the link still looks at its buffer.
  asio::post(checked->socket().get_executor(),
             [on_hello = on_hello_, checked, given = checked_] { on_hello(checked, given); });
}

void HandshakeReader::on_bad_frame(Link& link, wire::FrameError error) {
  if (!link_) return;
  const Bytes head = link.unread();
  if (on_feed_ && head.size() >= sizeof dial9::kMagic &&
      std::equal(std::begin(dial9::kMagic), std::end(dial9::kMagic), head.begin())) {
    on_dial9(link);
    return;
  }
  refuse(wire::REFUSE_PROTOCOL, wire::frame_error_text(error), true);
}

// Who is refused here does not understand our frames: the log has the reason, the peer the end of
// its connection.
void HandshakeReader::on_dial9(Link& link) {
  if (link.unread().size() < dial9::kHeaderBytes) {
    link.read_more();  // the deadline holds
    return;
  }
  const uint8_t version = link.unread()[sizeof dial9::kMagic];
  std::string reason;
  if (!user_refusal_.empty()) {
    reason = user_refusal_;
  } else if (version != dial9::kFormatVersion) {
    reason = fmt::format("a dial9 stream of version {}, which is not known", version);
  } else if (!core_.token().empty() && !link.stream().has_certificate()) {
    reason =
        "a dial9 stream: it can show no token, and this collector asks for one (or for a client "
        "certificate)";
  }
  const std::shared_ptr<Link> checked = link_;
  finish();
  checked->set_owner(nullptr);
  if (!reason.empty()) {
    core_.refused(checked->peer(), reason);
    checked->close();
    on_failure_(reason, refused_);
    return;
  }
  // Not from here: the link still looks at its buffer.
  asio::post(checked->socket().get_executor(), [on_feed = on_feed_, checked] { on_feed(checked); });
}

void HandshakeReader::on_link_end(Link& link, const std::string& reason) {
  if (!link_) return;
  finish();
  // An adb forward or iproxy without an app behind it accepts and ends: no reason for a log line.
  if (link.received_bytes() != 0) core_.refused(link.peer(), "before its welcome: " + reason);
  on_failure_(reason, refused_);
}

}  // namespace collect::ingest
