#include "daemon/ctl/dump/event_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <mutex>

#include "daemon/ctl/check/ordered_work.h"
#include "daemon/ctl/dump/block_printer.h"
#include "daemon/ctl/dump/dump_blocks.h"
#include "storage/read/workers.h"

namespace collect::ctl {
namespace {

// Limit of printed text in memory; the rest of a longer block is written directly.
constexpr size_t kMaxBlockBytes = size_t{1} << 20;

// So many events (32 MiB of a file) take long enough to say how far they are.
constexpr uint64_t kManyEvents = uint64_t{1} << 20;

// A nearby zero for the text form: headers or first events, without reading the files. Where times
// step back some lines are negative.
uint64_t first_ns(const DumpedSession& session) {
  uint64_t first = kNever;
  for (const atf::SessionThread& thread : session.reader.threads()) {
    if (thread.index && thread.index->size() != 0) {
      first = std::min(first, thread.index->time_of(0));
    }
  }
  if (first == kNever) return kNever;
  return session.clock ? session.clock->line_ns(first) : first;
}

std::string utc_text(uint64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &utc);
  const std::string fraction = std::to_string(1'000'000'000 + unix_ns % 1'000'000'000);
  return fmt::format("{}.{} UTC", day, fraction.substr(1));
}

class Dump {
 public:
  Dump(const DumpOptions& options, const std::vector<std::unique_ptr<DumpedSession>>& sessions,
       std::ostream& out, const std::function<void(uint64_t, uint64_t)>& progress)
      : options_(options), sessions_(sessions), out_(out), progress_(progress) {
    for (const auto& session : sessions) {
      const uint64_t first = first_ns(*session);
      origins_.push_back(first == kNever ? 0 : first);
      if (first != kNever) first_ = std::min(first_, first);
    }
    if (first_ == kNever) first_ = 0;
    if (options.merged) std::fill(origins_.begin(), origins_.end(), first_);
  }

  // False: the limit, or the reader, ended it.
  bool run() {
    if (options_.merged && !options_.json) {
      for (size_t i = 0; sessions_.size() > 1 && i < sessions_.size(); ++i) print_session(i);
      print_origin(*sessions_.front(), first_);
    }
    if (done()) return false;
    DumpBlocks blocks(options_, sessions_);
    all_ = blocks.events();
    const size_t workers = read::workers_for(all_ / DumpBlock::kEvents);
    for (size_t i = 0; i <= workers; ++i)
      printers_.emplace_back(options_, sessions_, origins_, filters_);
    work_in_order<Piece>(
        workers, [&](Piece& piece) { return blocks.next(piece.block); },
        [this](size_t worker, Piece& piece) {
          piece.done = {};
          piece.text.clear();
          printers_[worker].print(piece.block, piece.done, piece.text, UINT64_MAX, kMaxBlockBytes);
        },
        [this](Piece& piece) { return put(piece); });
    if (all_ >= kManyEvents) progress_(all_, all_);
    return !done();
  }

 private:
  struct Piece {
    DumpBlock block;
    PrintedBlock done;
    TextBuffer text;
  };

  bool done() const { return printed_ >= options_.limit || !out_.ok(); }

  // False: no more is wanted.
  bool put(Piece& piece) {
    BlockPrinter& printer = printers_.back();
    if (!options_.json && piece.block.begins_session) {
      if (sessions_.size() > 1) print_session(piece.block.session);
      print_origin(*sessions_[piece.block.session], origins_[piece.block.session]);
    }
    if (!options_.json && piece.block.begins_thread) printer.begin_thread(piece.block, out_);
    const uint64_t wanted = options_.limit - printed_;
    if (piece.done.printed >= wanted) {
      piece.done = {};  // cut within this block: it is printed again, up to there
    } else {
      out_.put_block(piece.text.text());
    }
    if (!piece.done.is_whole) printer.print(piece.block, piece.done, out_, wanted, SIZE_MAX);
    printed_ += piece.done.printed;
    seen_ += piece.block.events;
    if (all_ >= kManyEvents && seen_ < all_) progress_(seen_, all_);
    return !done();
  }

  void print_session(size_t number) {
    out_.put("# session ");
    out_.dec(number + 1);
    out_.put(": ");
    out_.printable(sessions_[number]->trace.path);
    if (!sessions_[number]->where_from.empty()) {
      out_.put(", ");
      out_.sentence(sessions_[number]->where_from);
    }
    out_.put('\n');
  }

  void print_origin(const DumpedSession& session, uint64_t origin) {
    out_.put("# microseconds since ");
    if (session.clock) {
      out_.put(utc_text(origin));
      out_.put(", collector's clock");
    } else {
      out_.dec(origin);
      out_.put(" ns");
    }
    out_.put("; duration at each return\n");
  }

  const DumpOptions& options_;
  const std::vector<std::unique_ptr<DumpedSession>>& sessions_;
  TextOut out_;
  std::vector<uint64_t> origins_;  // the zero of each session's text
  uint64_t first_ = kNever;        // of all of them
  uint64_t printed_ = 0;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  uint64_t seen_ = 0;  // events, of all_
  uint64_t all_ = 0;
  std::mutex filters_;
  std::deque<BlockPrinter> printers_;  // one for each worker, the last for put()
};

}  // namespace

bool dump_events(const DumpOptions& options,
                 const std::vector<std::unique_ptr<DumpedSession>>& sessions, std::ostream& out,
                 const std::function<void(uint64_t, uint64_t)>& progress) {
  return Dump(options, sessions, out, progress).run();
}

}  // namespace collect::ctl
