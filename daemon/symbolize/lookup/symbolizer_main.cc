// collect-symbolizer: reads one request from standard input, writes the answer to standard output.
// Started by collectord and collectctl, of no use by hand. No signal ends a read or a write early:
// the only one that is handled (demangle.cc) lets them continue.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <new>

#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/confine.h"
#include "daemon/symbolize/lookup/demangle.h"
#include "daemon/symbolize/lookup/lookup.h"

namespace collect::symbolize {
namespace {

Result<LookupRequest> read_request() {
  FrameReader reader(kMaxRequestBytes);
  std::array<uint8_t, 64 * 1024> block;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got <= 0) return Error{Code::kTruncated, "the request ends too early"};
    reader.push(Bytes(block).first(static_cast<size_t>(got)));
    const auto frame = reader.next();
    if (!frame.ok()) return frame.error();
    if (!*frame) continue;
    if ((*frame)->kind != FrameKind::kRequest) return Error{Code::kDamaged, "not a request"};
    return decode_request((*frame)->body);
  }
}

Status write_frame(FrameKind kind, Bytes body) {
  const std::vector<uint8_t> frame = frame_bytes(kind, body);
  for (size_t at = 0; at < frame.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, frame.data() + at, frame.size() - at);
    if (wrote <= 0) return errno_error(errno, "answer");
    at += static_cast<size_t>(wrote);
  }
  return {};
}

int complain(const Error& error, int code) {
  std::fprintf(stderr, "collect-symbolizer: %s\n", error.message.c_str());
  return code;
}

int serve() {
  const Status limited = limit_process();
  if (!limited.ok()) return complain(limited.error(), kExitNotConfined);
  const Result<LookupRequest> request = read_request();
  if (!request.ok()) return complain(request.error(), kExitBadRequest);
  std::vector<ModuleFile> files = open_module_files(*request);
  ::close(STDIN_FILENO);
  const DemangleClock clock;
  const std::string missing = limit_system_calls();
  const Status answered = look_up(*request, std::move(files), missing, write_frame);
  return answered.ok() ? kExitDone : kExitNoReader;
}

}  // namespace
}  // namespace collect::symbolize

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return collect::symbolize::serve();
  } catch (const std::bad_alloc&) {
    return collect::symbolize::kExitNoMemory;
  }
}
