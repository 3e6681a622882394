// An io_context that the test's own thread runs, and sockets whose one end is on it: nothing
// happens but what the test lets happen.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/ingest/link/link.h"
#include "daemon/ingest/link/work_threads.h"
#include "tests/fakes/frame_socket.h"

namespace collect::ingest {

class IoLoop {
 public:
  asio::io_context& io() { return io_; }
  // Everything that can be done now.
  size_t run() {
    io_.restart();
    return io_.poll();
  }
  // The same, with what these threads do for it meanwhile.
  void run_with(const WorkThreads* threads) {
    const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
    run();
    while (threads != nullptr && !(threads->is_idle() && run() == 0)) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "the threads do not come to rest";
        return;
      }
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(1));
    }
  }
  bool run_until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  // A connected stream: one end for the code, one for the test.
  std::pair<Socket, fakes::FrameSocket> connection() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    Socket socket(io_);
    socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
    return {std::move(socket), fakes::FrameSocket(ends[1])};
  }
  std::pair<std::shared_ptr<Link>, fakes::FrameSocket> link(std::vector<uint8_t> early = {}) {
    auto [socket, other] = connection();
    return {std::make_shared<Link>(std::move(socket), nullptr, "peer", std::move(early)),
            std::move(other)};
  }

 private:
  asio::io_context io_{1};
};

// Keeps what a link tells its owner.
class HeardOwner final : public LinkOwner {
 public:
  std::function<void(Link&, const wire::Frame&)> then;  // behind each frame
  std::vector<wire::FrameType> types;
  std::vector<std::vector<uint8_t>> bodies;
  std::vector<wire::FrameError> bad;
  std::vector<std::string> ends;

  void on_frame(Link& link, const wire::Frame& frame) override {
    types.push_back(frame.type);
    bodies.emplace_back(frame.body.begin(), frame.body.end());
    if (then) then(link, frame);
  }
  void on_bad_frame(Link&, wire::FrameError error) override { bad.push_back(error); }
  void on_link_end(Link&, const std::string& reason) override { ends.push_back(reason); }
};

}  // namespace collect::ingest
