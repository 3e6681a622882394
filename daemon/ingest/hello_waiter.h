// A connection before its hello: waits for the first frame up to a deadline, checks it, and hands
// the connection on. What sends anything else gets a reason and is let go.
#pragma once

#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "daemon/ingest/core.h"
#include "daemon/ingest/link.h"

namespace collect::ingest {

class HelloWaiter final : public LinkOwner, public std::enable_shared_from_this<HelloWaiter> {
 public:
  // The hello holds; the link is open and nobody reads it.
  using OnHello = std::function<void(std::shared_ptr<Link>, const wire::Hello&)>;
  // Exactly one of the two is called, unless the io thread ends first.
  using OnFailure = std::function<void(const std::string& reason)>;

  static void wait(IngestCore& core, std::shared_ptr<Link> link, OnHello on_hello,
                   OnFailure on_failure);

  HelloWaiter(IngestCore& core, std::shared_ptr<Link> link, OnHello on_hello, OnFailure on_failure);

  void on_frame(Link& link, const wire::Frame& frame) override;
  void on_bad_frame(Link& link, wire::FrameError error) override;
  void on_link_end(Link& link, const std::string& reason) override;

 private:
  void start();
  void refuse(wire::RefuseCode code, const std::string& reason, bool retry);
  void finish();

  IngestCore& core_;
  std::shared_ptr<Link> link_;  // null when done
  OnHello on_hello_;
  OnFailure on_failure_;
  asio::steady_timer deadline_;
};

}  // namespace collect::ingest
