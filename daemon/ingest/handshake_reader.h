// A connection before its hello: waits for the first frame up to a deadline, checks it, challenges
// the agent, checks its proof, and hands the connection on. A dial9 stream is recognised by its
// header, and handed on too. What sends anything else gets a reason and is let go.
#pragma once

#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/link/link.h"
#include "daemon/ingest/session/core.h"

namespace collect::ingest {

class HandshakeReader final : public LinkOwner,
                              public std::enable_shared_from_this<HandshakeReader> {
 public:
  // The hello holds and so does the token's proof; the link is open and no one reads it.
  using OnHello = std::function<void(std::shared_ptr<Link>, const CheckedHello&)>;
  // Instead of a hello, a dial9 header came; the link is open, no one reads it, and has the header
  // among its early bytes.
  using OnFeed = std::function<void(std::shared_ptr<Link>)>;
  // Exactly one of them is called, unless the io thread ends first.
  // `refused`: one side said no, with this code.
  using OnFailure = std::function<void(const std::string& reason, wire::RefuseCode refused)>;

  // Without `on_feed` the link was dialled, and a dial9 stream is refused: agents
  // are dialled, feeds connect. `user_refusal`: why the user may not connect, not empty where it
  // has to prove the guest token. The reader is there as long as it waits.
  static std::weak_ptr<HandshakeReader> wait(IngestCore& core, std::shared_ptr<Link> link,
                                             OnHello on_hello, OnFailure on_failure,
                                             OnFeed on_feed = nullptr,
                                             std::string user_refusal = {});

  HandshakeReader(IngestCore& core, std::shared_ptr<Link> link, OnHello on_hello,
                  OnFailure on_failure, OnFeed on_feed, std::string user_refusal);

  // Someone else needs the slot: ends the connection without an answer.
  void evict(const std::string& reason);
  // Let go of when this connection is decided.
  void hold(std::shared_ptr<void> lease) { lease_ = std::move(lease); }

  void on_frame(Link& link, const wire::Frame& frame) override;
  void on_bad_frame(Link& link, wire::FrameError error) override;
  void on_link_end(Link& link, const std::string& reason) override;

 private:
  void start();
  void on_handshake(const std::string& fault);
  void on_dial9(Link& link);
  void on_hello(Link& link, const wire::Frame& frame);
  void on_proof(const wire::Frame& frame);
  void refuse(wire::RefuseCode code, const std::string& reason, bool retry);
  void finish();

  IngestCore& core_;
  std::shared_ptr<Link> link_;  // null when done
  OnHello on_hello_;
  OnFailure on_failure_;
  OnFeed on_feed_;
  const std::string user_refusal_;
  asio::steady_timer deadline_;
  bool challenged_ = false;  // the hello came, and `checked_` waits for its proof
  CheckedHello checked_;
  std::string token_;                                    // that the challenge was made with
  wire::RefuseCode refused_ = wire::REFUSE_UNSPECIFIED;  // by the agent
  std::shared_ptr<void> lease_;
};

}  // namespace collect::ingest
