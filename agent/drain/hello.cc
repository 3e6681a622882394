#include "agent/drain/hello.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/platform/identity.h"
#include "agent/ring/recorder.h"
#include "agent/text.h"
#include "formats/atf/layout.h"

namespace collect::agent {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void draw_process_id(uint8_t out[16]) {
  if (fill_random(out, 16)) return;
  // Without the system's randomness, time and process number must do: unique, if not random.
  const uint64_t parts[2] = {now_ns() * 0x9E3779B97F4A7C15ull,
                             (static_cast<uint64_t>(getpid()) << 32) ^ (now_ns() << 1)};
  std::memcpy(out, parts, sizeof parts);
}

}  // namespace

size_t read_file(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return 0;
  size_t used = 0;
  while (used < size) {
    const ssize_t got = read(fd, out + used, size - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  close(fd);
  return used;
}

void fill_identity(const Settings& settings, collect_wire_Hello& hello) {
  hello = collect_wire_Hello collect_wire_Hello_init_zero;
  hello.min_version = wire::kProtocolVersion;
  hello.max_version = wire::kProtocolVersion;
  hello.features = wire::kFeatureColumns;
  draw_process_id(hello.process_id);
  fill_system(hello);
#if defined(__x86_64__)
  hello.arch = collect_wire_Arch_ARCH_X86_64;
#else
  hello.arch = collect_wire_Arch_ARCH_ARM64;
#endif
  hello.pid = static_cast<uint32_t>(getpid());
  hello.parent_pid = static_cast<uint32_t>(getppid());
  copy_utf8(hello.tag, sizeof hello.tag, settings.tag, sizeof settings.tag);
  copy_utf8(hello.agent_version, sizeof hello.agent_version, kAgentVersion, 32);
#if defined(__APPLE__)
  hello.clock_type = static_cast<uint32_t>(atf::ClockType::kMachContinuous);
#else
  hello.clock_type = static_cast<uint32_t>(atf::ClockType::kBoottime);
#endif
  hello.atf_version = settings.atf_version;
  hello.page_bytes = kPageBytes;
}

void read_token(const Settings& settings, Token& token) {
  token = Token{};
  token.wanted = settings.token_file[0] != '\0';
  if (!token.wanted) return;
  char text[kMaxToken + 2];
  size_t size = read_file(settings.token_file, text, sizeof text);
  while (size > 0 && is_space(text[size - 1])) --size;
  size_t start = 0;
  while (start < size && is_space(text[start])) ++start;
  size -= start;
  if (size == 0 || size > kMaxToken) return;
  std::memcpy(token.bytes, text + start, size);
  token.size = size;
  token.readable = true;
}

bool tokens_equal(Bytes one, Bytes other) {
  if (one.size() != other.size()) return false;
  uint8_t difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<uint8_t>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

}  // namespace collect::agent
