#include "storage/export/thread_time_line.h"

#include <algorithm>

#include "formats/core/text/hex.h"
#include "storage/read/thread_breaks.h"
#include "storage/select/detail_registers.h"

namespace collect::exports {
namespace {

constexpr size_t kNoteBytes = 64;                            // of a stack, or of another payload
constexpr uint64_t kEventsBetweenDrops = uint64_t{1} << 21;  // 64 MiB of index

const EventNotes kAfterLoss = {{"after_loss", EventNote::Kind::kFlag, 1, {}}};
const EventNotes kUnwound = {{"ended_by", EventNote::Kind::kText, 0, "an exception"}};
// Beside the notes of the call, in viewers that put both together.
std::string_view at_return(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "return.x0", "return.x1",    "return.x2",     "return.x3", "return.x4",
      "return.x5", "return.x6",    "return.x7",     "return.lr", "return.fp",
      "return.sp", "return.stack", "return.payload"};
  for (const std::string_view known : kNames) {
    if (known.substr(std::string_view("return.").size()) == name) return known;
  }
  return name;
}

const EventNotes kSkipped = {{"ended_by", EventNote::Kind::kText, 0, "the end of an outer call"}};

}  // namespace

ThreadTimeLine::ThreadTimeLine(ExportedSession& session, const atf::SessionThread& thread,
                               const ExportedThread& who, const FunctionNames& names,
                               const calls::Window& window, TimeLineTarget& target, EventRate& rate,
                               ExportCounts& counts)
    : session_(session),
      who_(who),
      names_(names),
      window_(window),
      target_(target),
      rate_(rate),
      counts_(counts),
      gaps_(session.gaps_of(who.n, reasons_)),
      within_(read::idle_times_of(session.manifest, who.n)) {
  if (thread.detail) details_.emplace(thread.detail->records());
}

// ---- times

uint64_t ThreadTimeLine::ascending(uint64_t device_ns) {
  device_ns = std::clamp(device_ns, window_.first_ns, window_.last_ns);
  last_ns_ = std::max(last_ns_, device_ns);
  return session_.line_ns(last_ns_);
}

void ThreadTimeLine::begin_thread(uint64_t device_ns) {
  if (has_begun_) return;
  has_begun_ = true;
  target_.begin_thread(who_, session_.line_ns(std::max(device_ns, window_.first_ns)));
}

// What is before something at this time. Stalls behind a loss come behind it.
void ThreadTimeLine::arrive(uint64_t device_ns) {
  begin_thread(device_ns);
  if (!loss_) draw_stalls(device_ns);
}

void ThreadTimeLine::draw_stalls(uint64_t until_ns) {
  for (; next_within_ < within_.size() && within_[next_within_].first_ns < until_ns;
       ++next_within_) {
    const storage::Stall& stall = within_[next_within_];
    const uint64_t first_ns = std::max(stall.first_ns, last_ns_);
    const uint64_t last_ns = std::min({stall.last_ns, until_ns, window_.last_ns});
    if (first_ns >= last_ns || first_ns < window_.first_ns) continue;
    const uint64_t begin_ns = ascending(first_ns);
    target_.stall_within(stall, begin_ns, ascending(last_ns));
  }
}

// The pages of the index that were read leave this process.
void ThreadTimeLine::drop_pages(uint64_t seq) {
  if (seq - dropped_seq_ < kEventsBetweenDrops) return;
  dropped_seq_ = seq;
  session_.drop_pages(who_.n);
}

// ---- what is wanted

bool ThreadTimeLine::wants(uint32_t slot) {
  if (session_.functions.everything()) return true;
  if (slot >= wanted_.size()) wanted_.resize(slot + 1);
  if (wanted_[slot] == 0) {
    wanted_[slot] = session_.functions.wants(names_.id_of(slot)) ? 1 : -1;
  }
  return wanted_[slot] > 0;
}

// Null: there is no record.
const EventNotes* ThreadTimeLine::notes_of(uint64_t detail_seq, bool is_end) {
  if (detail_seq == atf::kNoDetail || !details_) return nullptr;
  std::optional<atf::DetailRecord> record;
  while (details_->seq() <= detail_seq) {
    record = details_->next();
    if (!record) return nullptr;
  }
  if (!record) return nullptr;
  notes_.clear();
  const auto detail = select::function_of(*record);
  if (detail) {
    select::for_each_register(*record, *detail, [&](const select::Register& reg) {
      notes_.push_back({reg.name, EventNote::Kind::kAddress, reg.value, {}});
    });
  }
  const Bytes bytes = detail ? detail->stack : record->payload;
  if (!bytes.empty()) {
    note_text_ = hex_bytes(bytes.first(std::min(bytes.size(), kNoteBytes)));
    if (bytes.size() > kNoteBytes) note_text_ += "…";
    notes_.push_back({detail ? "stack" : "payload", EventNote::Kind::kText, 0, note_text_});
  }
  if (is_end) {
    for (EventNote& note : notes_) note.name = at_return(note.name);
  }
  return &notes_;
}

// ---- calls

void ThreadTimeLine::on_call_begin(const calls::Call& call) {
  if (call.begin.ns >= window_.first_ns) rate_.add(call.begin.ns);
  if (loss_) settle(call.begin.ns, call.is_caller_in_doubt);
  arrive(call.begin.ns);
  if (call.begin.ns < last_ns_ && call.begin.ns >= window_.first_ns) ++counts_.moved_times;
  const bool is_wanted = wants(call.slot);
  open_.push_back({call.slot, is_wanted, is_wanted});
  if (is_wanted) {
    ++counts_.calls;
    target_.begin_call(ascending(call.begin.ns), call.slot, notes_of(call.begin.detail_seq, false));
  }
  drop_pages(call.begin.seq);
}

void ThreadTimeLine::on_call_end(const calls::EndedCall& call) {
  if (call.has_own_end()) {
    rate_.add(call.end.ns);
    if (call.end.ns < last_ns_ && call.end.ns >= window_.first_ns) ++counts_.moved_times;
  }
  if (loss_ && call.reason != calls::EndReason::kCutByGap) settle(call.end.ns, false);
  arrive(call.end.ns);
  const Open open = open_.back();
  open_.pop_back();
  if (call.reason == calls::EndReason::kOpenAtEnd) (void)ascending(call.end.ns);  // so long it is
  if (!open.is_drawn || call.reason == calls::EndReason::kOpenAtEnd) return;
  const EventNotes* notes = nullptr;
  if (call.has_own_end()) notes = notes_of(call.end.detail_seq, true);
  if (call.reason == calls::EndReason::kUnwound) {
    if (notes == nullptr) notes_.clear();
    notes_.push_back(kUnwound.front());
    notes = &notes_;
  }
  if (call.reason == calls::EndReason::kSkipped) notes = &kSkipped;
  target_.end_call(ascending(call.end.ns), call.slot, notes);
}

void ThreadTimeLine::on_lone_end(uint32_t /*slot*/, calls::EndReason /*reason*/,
                                 const calls::Moment& moment) {
  rate_.add(moment.ns);
  arrive(moment.ns);
  ++counts_.lone_ends;
}

// ---- losses

void ThreadTimeLine::on_gap(const calls::Gap& gap, const calls::Moment& last) {
  // Some are passed over; several may be before the same event.
  const auto is_it = [&gap](const calls::Gap& one) {
    return one.before_seq == gap.before_seq && one.first_ns == gap.first_ns;
  };
  while (next_gap_ + 1 < gaps_.size() && !is_it(gaps_[next_gap_])) ++next_gap_;
  const uint32_t reasons = reasons_[next_gap_];
  counts_.lost_events += gap.lost;
  const uint64_t first_ns = std::max(gap.first_ns, last.ns);
  arrive(first_ns);
  if (loss_) {  // nothing was read between the two
    loss_->last_ns = gap.last_ns;
    loss_->events += gap.lost;
    loss_->reasons |= reasons;
    return;
  }
  loss_ = Loss{first_ns, gap.last_ns, gap.lost, reasons};
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
    if (open->is_drawn) target_.end_call(ascending(first_ns), open->slot, nullptr);
    open->is_drawn = false;
  }
}

// Something is known to be behind the loss, at this time.
void ThreadTimeLine::settle(uint64_t device_ns, bool is_in_doubt) {
  const Loss loss = *loss_;
  loss_.reset();
  const uint64_t last_ns = loss.last_ns == 0 ? std::max(device_ns, loss.first_ns)
                                             : std::max(loss.last_ns, loss.first_ns);
  std::string reasons;
  for (const std::string& reason : storage::lost_reason_names(loss.reasons)) {
    reasons += (reasons.empty() ? "" : ", ") + reason;
  }
  const uint64_t line_first_ns = ascending(loss.first_ns);
  const uint64_t line_last_ns = ascending(std::min(last_ns, std::max(device_ns, loss.first_ns)));
  target_.lose(line_first_ns, line_last_ns, loss.events, reasons);
  if (is_in_doubt) return;
  for (Open& open : open_) {
    if (!open.is_wanted) continue;
    open.is_drawn = true;
    ++counts_.calls;
    target_.begin_call(line_last_ns, open.slot, &kAfterLoss);
  }
}

void ThreadTimeLine::finish() {
  if (loss_) settle(loss_->last_ns, true);
  if (!has_begun_) return;
  for (const storage::Stall& stall : within_) {
    const uint64_t first_ns = std::max(stall.first_ns, window_.first_ns);
    const uint64_t last_ns = std::min(stall.last_ns, window_.last_ns);
    if (!stall.thread || first_ns >= last_ns) continue;
    target_.stall(&who_, stall, session_.line_ns(first_ns), session_.line_ns(last_ns));
  }
  target_.end_thread(session_.line_ns(last_ns_));
}

}  // namespace collect::exports
