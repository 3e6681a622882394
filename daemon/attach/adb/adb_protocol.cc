#include "daemon/attach/adb/adb_protocol.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace collect::attach {
namespace {

constexpr size_t kStatusBytes = 4;
constexpr size_t kLengthBytes = 4;
constexpr size_t kShellHeaderBytes = 5;
// Attributes of a line; anything else belongs to the state.
constexpr std::array<std::string_view, 6> kAttributes = {"transport_id", "features", "device",
                                                         "model",        "product",  "usb"};
// How adb shows a device whose USB descriptor has no serial number.
constexpr std::string_view kNoSerial = "(no serial number)";

Result<size_t> parse_hex4(std::string_view digits) {
  size_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || stop != end || digits.size() != kLengthBytes) {
    return Error{Code::kDamaged, "four hex digits were expected: this is no adb server"};
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Takes the last word off `text` when it is a known attribute.
bool take_attribute(std::string_view& text, std::string_view& key, std::string_view& value) {
  const size_t space = text.find_last_of(' ');
  const std::string_view word = space == std::string_view::npos ? text : text.substr(space + 1);
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  key = word.substr(0, colon);
  value = word.substr(colon + 1);
  if (std::find(kAttributes.begin(), kAttributes.end(), key) == kAttributes.end()) return false;
  text = space == std::string_view::npos ? std::string_view() : trimmed(text.substr(0, space));
  return true;
}

struct Sentences {
  std::string reason, advice;
};

// A command that people paste into a shell: a name that means more there is left to them.
std::string how_to_reconnect(std::string_view serial) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:[]%-";
  if (serial.starts_with('-') || serial.find_first_not_of(kPlain) != std::string_view::npos) {
    return "disconnect it with `adb disconnect`, and connect it again with `adb connect`";
  }
  const std::string name(serial);
  return fmt::format("`adb disconnect {} && adb connect {}`", name, name);
}

// The server's words, and what people can do about them.
Sentences explain(const SourceDevice& device) {
  const std::string& state = device.reported_state;
  if (state == "unauthorized") {
    return {"the phone does not trust this computer yet",
            "unlock the phone and confirm the prompt \"Allow USB debugging?\""};
  }
  if (state == "authorizing" || state == "connecting") {
    return {"the phone and the adb server are still making each other's acquaintance",
            "wait a moment; if it stays so, unlock the phone and look for a prompt"};
  }
  if (state == "offline") {
    if (device.connection == "network") {
      return {"the phone does not answer the adb server any more", how_to_reconnect(device.serial)};
    }
    return {"the phone does not answer the adb server",
            "unplug it and plug it in again, or try `adb reconnect offline`"};
  }
  if (state.starts_with("no permissions")) {
    return {"the adb server may not open the USB device: " + state,
            "add a udev rule for it (package android-sdk-platform-tools-common), then plug it in "
            "again"};
  }
  if (state == "recovery" || state == "sideload" || state == "rescue" || state == "bootloader" ||
      state == "host") {
    return {"it runs no Android now: " + state, "let it start Android: `adb reboot`"};
  }
  return {fmt::format("the adb server says \"{}\"", state), "see `adb devices -l`"};
}

bool parse_line(std::string_view line, SourceDevice& device) {
  std::string_view rest = trimmed(line);
  bool has_serial = true;
  std::string_view serial;
  if (rest.starts_with(kNoSerial)) {
    serial = kNoSerial;
    has_serial = false;
  } else {
    serial = rest.substr(0, rest.find_first_of(" \t"));
  }
  rest = trimmed(rest.substr(serial.size()));
  std::string_view key;
  std::string_view value;
  bool is_usb = false;
  while (take_attribute(rest, key, value)) {
    if (key == "model") device.model = std::string(value);
    is_usb = is_usb || key == "usb";
  }
  if (serial.empty() || serial.size() > kMaxSerialBytes || rest.empty()) return false;
  device.serial = std::string(serial);
  device.reported_state = std::string(rest);
  // A network address, or the name that a phone announces itself by.
  const bool is_network =
      serial.find(':') != std::string_view::npos || serial.find("._adb") != std::string_view::npos;
  device.connection = serial.starts_with("emulator-") ? "emulator"
                      : is_usb                        ? "usb"
                      : is_network && has_serial      ? "network"
                                                      : "";
  device.is_usable = device.reported_state == "device" && has_serial;
  if (device.is_usable) return true;
  Sentences sentences = explain(device);
  if (!has_serial) {
    sentences = {"it has no serial number, so no one can say which device is meant",
                 "give it one, or use it by `adb -t`"};
  }
  device.reason = std::move(sentences.reason);
  device.advice = std::move(sentences.advice);
  return true;
}

uint32_t u32_at(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

}  // namespace

Result<std::string> adb_request(std::string_view text) {
  if (text.size() > kMaxAdbRequestBytes) {
    return Error{
        Code::kLimit,
        fmt::format("a request of {} bytes is more than the adb server takes", text.size())};
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string request;
  for (int shift = 12; shift >= 0; shift -= 4) {
    request += kDigits[(text.size() >> static_cast<unsigned>(shift)) & 0xF];
  }
  request += text;
  return request;
}

size_t AdbAnswer::wanted() const {
  switch (step_) {
    case Step::kStatus:
      return kStatusBytes;
    case Step::kLength:
      return kLengthBytes;
    case Step::kText:
      return text_bytes_;
    case Step::kDone:
      break;
  }
  return 0;
}

Status AdbAnswer::take(std::string_view piece) {
  COLLECT_CHECK(piece.size() == wanted() && step_ != Step::kDone);
  switch (step_) {
    case Step::kStatus:
      failed_ = piece == "FAIL";
      if (!failed_ && piece != "OKAY") {
        return Error{Code::kDamaged, "neither OKAY nor FAIL was received: this is no adb server"};
      }
      step_ = failed_ || parts_ == Parts::kStatusAndText ? Step::kLength : Step::kDone;
      break;
    case Step::kLength: {
      const Result<size_t> length = parse_hex4(piece);
      if (!length.ok()) return length.error();
      text_bytes_ = *length;
      step_ = text_bytes_ == 0 ? Step::kDone : Step::kText;
      break;
    }
    default:
      text_ = std::string(piece);
      step_ = Step::kDone;
  }
  return {};
}

AdbDeviceList parse_adb_devices(std::string_view text) {
  AdbDeviceList list;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty()) continue;
    SourceDevice device;
    if (list.devices.size() < kMaxAdbDevices && parse_line(line, device)) {
      list.devices.push_back(std::move(device));
    } else {
      ++list.left_out;
    }
  }
  return list;
}

std::string parse_number(std::string_view said) {
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.remove_suffix(1);
  const bool is_word = std::all_of(
      said.begin(), said.end(), [](char character) { return character > ' ' && character <= '~'; });
  return is_word && said.size() <= kMaxSerialBytes ? std::string(said) : std::string();
}

std::string shell_packet(ShellStreamId stream, std::string_view data) {
  std::string bytes(1, static_cast<char>(stream));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>((data.size() >> shift) & 0xFF);
  }
  return bytes.append(data);
}

void ShellPackets::add(std::string_view bytes) {
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_ += bytes;
}

Result<std::optional<ShellPacket>> ShellPackets::next() {
  const std::string_view rest = std::string_view(bytes_).substr(taken_);
  if (rest.size() < kShellHeaderBytes) return std::optional<ShellPacket>();
  const size_t length = u32_at(rest, 1);
  if (length > kMaxShellPacketBytes) {
    return Error{Code::kDamaged,
                 fmt::format("a packet of {} bytes does not belong to shell,v2", length)};
  }
  if (rest.size() - kShellHeaderBytes < length) return std::optional<ShellPacket>();
  taken_ += kShellHeaderBytes + length;
  return std::optional<ShellPacket>(
      {static_cast<ShellStreamId>(rest[0]), std::string(rest.substr(kShellHeaderBytes, length))});
}

void ShellOutput::take(ShellPacket packet) {
  if (packet.stream == ShellStreamId::kOutput) {
    output += packet.data;
  } else if (packet.stream == ShellStreamId::kErrors) {
    errors += packet.data.substr(0, kMaxShellErrorBytes - errors.size());
  } else if (packet.stream == ShellStreamId::kExit && !packet.data.empty()) {
    exit_code = static_cast<uint8_t>(packet.data[0]);
    has_ended = true;
  }
}

Result<ShellOutput> parse_shell_v2(std::string_view bytes) {
  ShellOutput shell;
  ShellPackets packets;
  packets.add(bytes);
  while (!shell.has_ended) {
    Result<std::optional<ShellPacket>> packet = packets.next();
    if (!packet.ok()) return packet.error();
    if (!packet->has_value()) {
      return Error{Code::kTruncated, "the shell ended without an exit code"};
    }
    shell.take(std::move(**packet));
  }
  return shell;
}

}  // namespace collect::attach
