// collect-page: makes the page of one session (formats/html) for collectord, which starts it, gives
// it the request (daemon/web/page_request.h) and takes the page. A process of its own, so that a
// damaged file or a large capture is no danger to the daemon, and can be ended at any time.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "daemon/ctl/convert/session_input.h"
#include "daemon/ctl/export/page_export.h"
#include "daemon/ctl/running_names.h"
#include "daemon/symbolize/symbolizer.h"
#include "daemon/web/limits.h"
#include "daemon/web/page_request.h"

namespace collect::ctl {
namespace {

class DescriptorSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t wrote = ::write(STDOUT_FILENO, bytes.data() + at, bytes.size() - at);
      if (wrote < 0 && errno != EINTR) return errno_error(errno, "standard output");
      if (wrote > 0) at += static_cast<size_t>(wrote);
    }
    return {};
  }
};

// Files are mapped, not read into memory: a limit of the address space would be one of the capture.
Status limit_process() {
  const rlimit memory{web::kPageMemoryBytes, web::kPageMemoryBytes};
  if (::setrlimit(RLIMIT_DATA, &memory) != 0) return errno_error(errno, "RLIMIT_DATA");
  const rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return errno_error(errno, "RLIMIT_CORE");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error(errno, "PR_SET_PDEATHSIG");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "no_new_privs");
  // A page may take longer on a busy machine; the recording may not.
  (void)::setpriority(PRIO_PROCESS, 0, web::kPageNiceness);
  return {};
}

Result<web::PageRequest> read_request() {
  std::string text;
  std::array<char, 16 * 1024> block;
  while (text.size() <= web::kMaxPageRequestBytes) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "standard input");
    if (got == 0) return web::PageRequest::parse(text);
    text.append(block.data(), static_cast<size_t>(got));
  }
  return Error{Code::kLimit,
               "the request has more than " + std::to_string(web::kMaxPageRequestBytes) + " bytes"};
}

Status make_page(const web::PageRequest& request, ByteSink& out) {
  auto trace = open_trace(request.directory);
  if (!trace.ok()) return trace.error();
  if (trace->kind != TraceKind::kSession) {
    return Error{Code::kNotFound, request.directory + ": no session"};
  }
  ConvertLog log;
  if (request.symbols) {
    symbolize::SymbolizerOptions options;
    options.program = symbolize::symbolizer_program();
    options.directories = request.symbols->directories;
    options.roots = request.symbols->roots;
    // Without names there still is a page.
    const Status named = name_functions(*trace, options, web::kPageNamesTime);
    if (!named.ok()) log.remark("functions have no names: " + named.error().message);
  }
  if (is_recording(*trace)) {
    for (const std::string& sentence : trace->unopened()) log.missing(sentence);
    log.remark("the session is not sealed: this page shows what was stored when it was made");
  } else {
    check_session_input(*trace, log);
  }
  auto session = ExportedSession::open(*trace, {});
  if (!session.ok()) return session.error();
  ExportedSessions sessions;
  sessions.push_back(std::move(*session));
  return export_page(sessions, {request.can_change}, out, log);
}

int serve() {
  DescriptorSink out;
  Status made = limit_process();
  if (made.ok()) {
    const auto request = read_request();
    made = request.ok() ? make_page(*request, out) : request.error();
  }
  if (made.ok()) return 0;
  const std::string error = web::page_error_json(made.error().message);
  // Who does not take it has gone.
  (void)out.write(Bytes(reinterpret_cast<const uint8_t*>(error.data()), error.size()));
  return 0;
}

}  // namespace
}  // namespace collect::ctl

int main() {
  try {
    return collect::ctl::serve();
  } catch (const std::bad_alloc&) {
    constexpr char kSentence[] =
        "{\"error\":\"the page needs more memory than its limit: collectctl open has none\"}";
    return ::write(STDOUT_FILENO, kSentence, sizeof kSentence - 1) > 0 ? 0 : 1;
  }
}
