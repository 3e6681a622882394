// Conversations with usbmuxd for a program that has one thread and waits for each answer: which
// devices there are, and streams to their ports. Devices come and go while the WaitingIo works.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/usbmux/usbmux_source.h"
#include "daemon/ctl/record/phones/waiting_io.h"
#include "formats/core/result.h"

namespace collect::ctl {

class UsbmuxClient {
 public:
  UsbmuxClient(WaitingIo& io, attach::UsbmuxAddress address);

  // To be called first, once: the error says what is wrong with usbmuxd, and what to do.
  Status connect();
  // Those that are there now.
  const std::vector<attach::SourceDevice>& devices() const { return devices_; }
  bool has(const std::string& serial) const;

  // The ports of the range of agents on which an app listens.
  Result<std::vector<uint16_t>> find_agents(const std::string& serial);
  // kNotFound: no one listens there.
  Result<attach::Socket> open(const std::string& serial, uint16_t port);

  WaitingIo& io() { return io_; }
  const std::string& address() const { return address_.text; }

 private:
  // The serial numbers that usbmuxd lists.
  Result<std::vector<std::string>> list();

  WaitingIo& io_;
  const attach::UsbmuxAddress address_;
  attach::UsbmuxSource source_;
  std::vector<attach::SourceDevice> devices_;
};

// usbmuxd's address as other programs find it.
Result<attach::UsbmuxAddress> usbmuxd_address();

}  // namespace collect::ctl
