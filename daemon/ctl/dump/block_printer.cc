#include "daemon/ctl/dump/block_printer.h"

namespace collect::ctl {
namespace {

std::vector<PrintedThread> printed_threads(const DumpedSession& session) {
  std::vector<PrintedThread> threads;
  for (const atf::SessionThread& thread : session.reader.threads()) {
    PrintedThread printed;
    printed.n = thread.n;
    if (thread.index) {
      printed.tid = thread.index->header().thread_id;
      printed.has_depth = thread.index->version() == atf::Version::kV1;
    }
    const read::ManifestThread* said = session.manifest.thread(thread.n);
    if (said != nullptr) printed.name = said->name;
    threads.push_back(std::move(printed));
  }
  return threads;
}

}  // namespace

BlockPrinter::Session::Session(const DumpOptions& options, DumpedSession& session, size_t number,
                               uint64_t origin_ns)
    : dumped(session),
      json(session.names, printed_threads(session), session.clock ? &*session.clock : nullptr,
           session.clock ? session.trace.path : std::string()),
      text(session.names, printed_threads(session), origin_ns,
           {options.merged, session.clock ? number : 0}) {}

BlockPrinter::BlockPrinter(const DumpOptions& options,
                           const std::vector<std::unique_ptr<DumpedSession>>& sessions,
                           const std::vector<uint64_t>& origins_ns, std::mutex& filters)
    : options_(options), filters_(filters) {
  for (size_t i = 0; i < sessions.size(); ++i) {
    sessions_.push_back(std::make_unique<Session>(options, *sessions[i], i + 1, origins_ns[i]));
  }
  if (!options.functions.empty()) decisions_.resize(size_t{1} << kDecisionBits);
}

void BlockPrinter::begin_thread(const DumpBlock& block, TextBuffer& out) {
  sessions_[block.session]->text.begin_thread(out, block.thread, block.index->size());
}

bool BlockPrinter::wants(size_t session, uint64_t function_id) {
  if (decisions_.empty()) return true;
  Decision& known = decisions_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kDecisionBits)];
  if (known.session != session || known.function_id != function_id) {
    const std::lock_guard lock(filters_);
    known = {function_id, session, sessions_[session]->dumped.filter->wants(function_id)};
  }
  return known.is_wanted;
}

void BlockPrinter::print_stalls(const DumpBlock& block, PrintedBlock& done, TextBuffer& out) {
  for (; done.stalls < block.stalls.size(); ++done.stalls) {
    const DumpedStall& stall = block.stalls[done.stalls];
    if (stall.before != done.events) return;
    Session& session = *sessions_[stall.session];
    if (options_.json) {
      session.json.print(out, stall.thread, stall.stall, stall.time_ns);
    } else {
      session.text.print(out, stall.thread, stall.stall, stall.time_ns, stall.depth);
    }
  }
}

void BlockPrinter::print(const DumpBlock& block, PrintedBlock& done, TextBuffer& out,
                         uint64_t max_events, size_t max_bytes) {
  for (; done.events < block.events; ++done.events) {
    if (done.printed == max_events || out.size() > max_bytes) return;
    const atf::DetailRecord* record = nullptr;
    if (done.records < block.records.size() && block.records[done.records].of == done.events) {
      record = &block.records[done.records].record;
      // As hexadecimal digits.
      if (record->payload.size() > (max_bytes - out.size()) / 2) return;
    }
    print_stalls(block, done, out);
    if (record != nullptr) ++done.records;
    const DumpedEvent event = block.event(done.events);
    // Asked first, so that it has seen every function.
    if (!wants(event.session, event.event.function_id)) continue;
    Session& session = *sessions_[event.session];
    const calls::Window& window = session.dumped.window;
    if (event.time_ns < window.first_ns || event.time_ns > window.last_ns) continue;
    if (options_.json) {
      session.json.print(out, event.thread, event.seq, event.event, event.time_ns, record);
    } else {
      session.text.print(out, event.thread, event.event, event.time_ns, block.places[done.events],
                         record);
    }
    ++done.printed;
  }
  if (done.printed == max_events) return;
  print_stalls(block, done, out);
  done.is_whole = true;
}

}  // namespace collect::ctl
