// collect-page: makes the page of one session (formats/html) for collectord, which starts it, gives
// it the request (daemon/web/page_request.h) and takes the page. A process of its own, so that a
// damaged file or a large capture is no danger to the daemon, and can be ended at any time.
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/convert/address_names.h"
#include "daemon/ctl/convert/running_names.h"
#include "daemon/ctl/dump/event_text.h"
#include "daemon/ctl/terminal/text_out.h"
#include "daemon/machine/limited_process.h"
#include "daemon/symbolize/symbolizer.h"
#include "daemon/web/limits.h"
#include "daemon/web/page_request.h"
#include "formats/core/text/printable.h"
#include "storage/convert/session_input.h"
#include "storage/export/export.h"
#include "storage/export/page/function_calls.h"
#include "storage/export/page/page_export.h"
#include "storage/read/lod_files.h"
#include "storage/select/detail_registers.h"

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
               fmt::format("the request has more than {} bytes", web::kMaxPageRequestBytes)};
}

symbolize::SymbolizerOptions options_of(const web::PageRequest::Symbols& symbols) {
  symbolize::SymbolizerOptions options;
  options.program = symbolize::symbolizer_program();
  options.directories = symbols.directories;
  options.roots = symbols.roots;
  return options;
}

// What may be an address in it: registers, and words of the stack.
std::vector<uint64_t> addresses_of(const atf::DetailRecord& record) {
  std::vector<uint64_t> addresses;
  const auto function = select::function_of(record);
  if (!function) return addresses;
  select::for_each_register(record, *function,
                            [&](const select::Register& one) { addresses.push_back(one.value); });
  const Bytes stack = function->stack;
  for (size_t at = 0; at + sizeof(uint64_t) <= stack.size(); at += sizeof(uint64_t)) {
    addresses.push_back(load_le<uint64_t>(stack.data() + at));
  }
  return addresses;
}

Status put_record(const read::Trace& trace, const web::PageRequest& request, ByteSink& out) {
  const read::TraceThread* files = trace.thread(request.thread);
  std::optional<atf::DetailRecord> record;
  std::optional<atf::SessionReader> session;
  if (files != nullptr) session.emplace(trace.files({request.thread}));
  if (session && !session->threads().empty() && session->threads().front().detail) {
    record = session->threads().front().detail->get(request.record);
  }
  if (!record) {
    return Error{Code::kNotFound, "there is no such detail record"};
  }
  TextBuffer text;
  text.put("{\"record\":");
  print_detail_json(text, request.record, *record);
  text.put(",\"functions\":{");
  if (request.symbols) {
    const auto names = names_of_addresses(trace, addresses_of(*record),
                                          options_of(*request.symbols), web::kPageNamesTime);
    const char* before = "";
    for (const auto& [address, name] : names) {
      std::string json;
      append_json_string(json, name);
      text.put(fmt::format("{}\"{:#x}\":{}", before, address, json));
      before = ",";
    }
  }
  text.put("}}\n");
  const std::string_view bytes = text.text();
  return out.write(Bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

Status make_page(const web::PageRequest& request, ByteSink& out) {
  auto trace = read::open_trace(request.directory);
  if (!trace.ok()) return trace.error();
  if (trace->kind != read::TraceKind::kSession) {
    return Error{Code::kNotFound, request.directory + ": no session"};
  }
  if (request.want == web::PageWant::kRecord) return put_record(*trace, request, out);
  const bool is_whole = request.want == web::PageWant::kPage;
  const bool is_sealed = !is_recording(*trace);
  if (is_whole || request.want == web::PageWant::kLods) {
    // Without them there still is a page, which takes longer.
    const Status made = read::make_lods(*trace, [](size_t, size_t) {});
    if (request.want == web::PageWant::kLods) return made;
  }
  convert::ConvertLog log;
  if (request.symbols) {
    // Without names there still is a page.
    const Status named = name_functions(*trace, options_of(*request.symbols), web::kPageNamesTime);
    if (!named.ok()) log.remark("functions have no names: " + named.error().message);
  }
  if (!is_sealed) {
    for (const std::string& sentence : trace->unopened()) log.missing(sentence);
    log.remark("the session is not sealed: this page shows what was stored when it was made");
  } else if (is_whole) {
    convert::check_session_input(*trace, log);
  }
  auto session = exports::ExportedSession::open(*trace, {});
  if (!session.ok()) return session.error();
  exports::ExportedSessions sessions;
  sessions.push_back(std::move(*session));
  if (!is_whole) {
    sessions.front()->choose_window({request.first_ns, request.last_ns});
  }
  if (request.want == web::PageWant::kPerfetto) {
    return exports::export_view(sessions, exports::Target::kPerfetto, out, log);
  }
  if (request.want == web::PageWant::kFunction) {
    return exports::export_function_calls(sessions, request.function, out, log);
  }
  exports::PageOptions options;
  options.can_refresh = request.can_change;
  options.is_recording = !is_sealed;
  options.can_ask = true;
  options.as_data = !is_whole;
  options.bars_only = request.want == web::PageWant::kBars;
  return exports::export_page(sessions, options, out, log);
}

int serve() {
  DescriptorSink out;
  Status made = limit_process(web::kPageMemoryBytes, web::kPageNiceness);
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
        "{\"error\":\"the page needs more memory than its limit: collectctl open --no-serve has "
        "none\"}";
    return ::write(STDOUT_FILENO, kSentence, sizeof kSentence - 1) > 0 ? 0 : 1;
  }
}
