// Messages between a client and the adb server, as bytes: requests, answers, the device list,
// the packets of a shell. No sockets here. ATTACH.md "adb" has the conversation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/attach/device_source.h"
#include "formats/core/result.h"

namespace collect::attach {

inline constexpr size_t kMaxAdbRequestBytes = 0xFFFF;  // four hex digits
inline constexpr size_t kMaxAdbDevices = 256;  // of one list; the rest is left out and logged
inline constexpr size_t kMaxSerialBytes = 256;
inline constexpr size_t kMaxShellPacketBytes = 1u << 20;
inline constexpr size_t kMaxShellErrorBytes = 1024;  // of a shell's errors, which people are shown

// "000chost:version". kLimit when the text has more than four hex digits can say.
Result<std::string> adb_request(std::string_view text);

// One answer, piece by piece: the caller reads exactly wanted() bytes from the socket each time, so
// that nothing of what follows the answer is swallowed.
//
//   status  "OKAY", then the text if there is one; or "FAIL", then the text that says why
//   text    four hex digits of length, then that many bytes
class AdbAnswer {
 public:
  enum class Parts : uint8_t { kStatus, kText, kStatusAndText };

  explicit AdbAnswer(Parts parts) : parts_(parts) {
    if (parts == Parts::kText) step_ = Step::kLength;
  }

  size_t wanted() const;  // 0: the answer is complete
  // `piece` has wanted() bytes. kDamaged: what answers is no adb server.
  Status take(std::string_view piece);

  bool is_failure() const { return failed_; }
  const std::string& text() const { return text_; }  // the answer, or why it failed

 private:
  enum class Step : uint8_t { kStatus, kLength, kText, kDone };

  Parts parts_;
  Step step_ = Step::kStatus;
  bool failed_ = false;
  size_t text_bytes_ = 0;
  std::string text_;
};

struct AdbDeviceList {
  std::vector<SourceDevice> devices;
  size_t left_out = 0;  // lines that are no device, and devices beyond kMaxAdbDevices
};

// The text of host:devices-l and host:track-devices-l. Lines are read from their end, because
// states contain spaces and any attribute may be missing.
AdbDeviceList parse_adb_devices(std::string_view text);

// What `getprop ro.serialno` said. Empty: no number, but what a shell without it has to say.
std::string parse_number(std::string_view said);

// The packets of "shell,v2": u8 stream, u32 length, bytes.
enum class ShellStreamId : uint8_t { kInput, kOutput, kErrors, kExit, kCloseInput };

struct ShellPacket {
  ShellStreamId stream;
  std::string data;
};

std::string shell_packet(ShellStreamId stream, std::string_view data);

// Takes packets out of a stream that comes in pieces of any size.
class ShellPackets {
 public:
  void add(std::string_view bytes);
  // The next whole packet, or none yet. kDamaged: these are no packets.
  Result<std::optional<ShellPacket>> next();

 private:
  std::string bytes_;
  size_t taken_ = 0;  // of them
};

// What a shell command printed and how it ended.
struct ShellOutput {
  std::string output;
  std::string errors;  // the first kMaxShellErrorBytes
  int exit_code = 0;
  bool has_ended = false;

  void take(ShellPacket packet);
};

// A whole conversation. kTruncated without an exit code.
Result<ShellOutput> parse_shell_v2(std::string_view bytes);

}  // namespace collect::attach
