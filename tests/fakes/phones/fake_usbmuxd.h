// A usbmuxd with devices that a test plugs in and out, and with the misbehaviour that it asks for.
// Ports of devices lead to listeners on this machine. It writes and reads property lists as text:
// nothing of it is shared with what it tests.
//
// One thread of its own; every function may be called from any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace collect::fakes {

class FakeUsbmuxd {
 public:
  // On a socket at `path`, or on a port of loopback where it is empty.
  explicit FakeUsbmuxd(std::string path = "");
  ~FakeUsbmuxd();
  FakeUsbmuxd(const FakeUsbmuxd&) = delete;
  FakeUsbmuxd& operator=(const FakeUsbmuxd&) = delete;

  std::string address() const;  // as USBMUXD_SOCKET_ADDRESS has it

  // The DeviceID: another one each time.
  uint32_t attach(const std::string& serial, const std::string& connection = "USB");
  void detach(uint32_t device_id);  // its streams end also within a message
  // `device_port` of that device leads to a port of loopback; all others are refused.
  void map_port(const std::string& serial, uint16_t device_port, uint16_t local_port);
  void unmap_port(const std::string& serial, uint16_t device_port);

  // It ends with all connections; start() brings it back with the same devices under other ids.
  void stop();
  void start();

  // What every Connect is answered with; 0: the truth.
  void answer_connects_with(uint32_t number) { forced_result_ = number; }
  // The same for Listen.
  void answer_listens_with(uint32_t number) { listen_result_ = number; }
  // What a ListDevices is refused with; 0: the list.
  void answer_lists_with(uint32_t number) { list_result_ = number; }
  // Answers to Connect carry a tag that no one gave.
  void answer_connects_with_another_tag(bool another) { another_tag_ = another; }
  void leave_connects_unanswered(bool unanswered) { unanswered_ = unanswered; }
  // A stream takes nothing, and ends with the answer to its Connect.
  void end_streams_at_once(bool ends) { ends_at_once_ = ends; }
  // What it says to a Listen goes out in two pieces, the second when the first was read. 0: whole.
  // The same with answers to Connect.
  void split_answers_at(size_t bytes) { split_ = bytes; }
  // Goes out in one piece with the result 0 of a Connect, as the first bytes of the device.
  void greet_with(const std::string& bytes);
  // To everybody who listens, as it is.
  void send_to_listeners(const std::string& bytes);
  // Bytes of streams stay where they are until it is called with false.
  void hold_streams(bool held) { held_ = held; }

  // A message with its header, for send_to_listeners().
  static std::string message(uint32_t tag, const std::string& dictionary);
  static std::string attached_dictionary(uint32_t device_id, const std::string& serial,
                                         const std::string& connection);

  size_t listeners() const;
  size_t streams() const;
  size_t unanswered() const;  // connects that wait
  uint64_t connects() const { return connects_; }
  uint64_t accepted() const { return accepted_; }

 private:
  struct Client;
  struct Device {
    std::string serial, connection;
  };

  void open_listener();
  void run();
  void read_requests(Client& client);
  void answer(Client& client, uint32_t tag, const std::string& request);
  void connect(Client& client, uint32_t tag, const std::string& request);
  void send(Client& client, const std::string& bytes);
  void flush(Client& client);
  void relay(Client& client, size_t from);
  void end_streams(uint32_t device_id);

  const std::string path_;
  uint16_t port_ = 0;
  std::atomic<uint32_t> forced_result_{0};
  std::atomic<uint32_t> listen_result_{0};
  std::atomic<uint32_t> list_result_{0};
  std::atomic<bool> another_tag_{false};
  std::atomic<bool> unanswered_{false};
  std::atomic<bool> ends_at_once_{false};
  std::atomic<bool> held_{false};
  std::atomic<size_t> split_{0};
  std::atomic<uint64_t> connects_{0};
  std::atomic<uint64_t> accepted_{0};
  std::atomic<bool> over_{false};

  mutable std::mutex mutex_;  // guards what follows
  int listener_ = -1;
  uint32_t last_id_ = 0;
  std::string greeting_;
  std::map<uint32_t, Device> devices_;
  std::map<std::pair<std::string, uint16_t>, uint16_t> ports_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::thread thread_;
};

}  // namespace collect::fakes
