#include "agent/drain/drain_thread.h"

#include "agent/drain/drain_process_memory.h"
#include "agent/drain/link/status.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/run_records.h"
#include "agent/text.h"

namespace collect::agent {

// Here, where code is compiled for its size.
DrainThread::DrainThread() = default;

const char* DrainThread::prepare(const Settings& settings) {
  settings_ = settings;
  enable_log(settings.log);
  const char* error = link_.prepare(settings_, shipper_.streams());
  if (error != nullptr) return error;
  shipper_.metadata_sender().set_recording_settings(settings);
  start_filter_.prepare();
  if (!start_filter_.is_wanted()) recording_.begin_by_itself();
  return nullptr;
}

void DrainThread::request_stop(uint32_t timeout_ms) {
  g_control.stop_deadline_ms.store(monotonic_ms() + timeout_ms, std::memory_order_relaxed);
  // Pairs with the acquire in finished(): the deadline is seen with the request.
  g_control.stop.store(1, std::memory_order_release);
}

void DrainThread::drop_recording() {
  recording_.drop();
}

void DrainThread::watch_switches(int32_t process) {
  const SwitchesWanted wanted{settings_.switches, settings_.sample_hz};
  if (!wanted.switches && wanted.sample_hz == 0) return;
  // A thread of the program would have descriptors among the program's.
  const char* const problem =
      process != 0 ? switches_.watch(process, wanted) : "a thread drains; it takes a drain process";
  if (wanted.switches) {
    const bool are_estimated =
        problem != nullptr && clocks_.watch(process != 0 ? process : sys::getpid());
    shipper_.metadata_sender().set_switches(problem, are_estimated);
  }
  if (wanted.sample_hz == 0) return;
  const char* const no_samples = problem != nullptr ? problem : switches_.no_samples();
  shipper_.metadata_sender().set_samples(no_samples == nullptr ? wanted.sample_hz : 0, no_samples);
}

void DrainThread::run_for(TracedProcess& traced) {
  traced_ = &traced;
  pauses_.watch(traced);
  run();
}

void DrainThread::abandon() {
  link_.shut(false);
  shipper_.streams().spool().close();
}

void DrainThread::run() {
  ignore_this_thread();
  if (traced_ == nullptr) watch_switches(0);
  buffering_.open_spool();
  while (!finished()) round();
  allow_waiting(false);
  drop_recording();
  link_.shut(true);
  shipper_.streams().spool().close();
  g_control.connected.store(false, std::memory_order_relaxed);
  // What it would have recorded, the filter that did not come would have said.
  if (link_.given_up() && start_filter_.is_wanted()) note_run_failure(nullptr);
  note_run_ended();
  if (!link_.given_up()) set_status("the agent was stopped");
}

void DrainThread::round() {
  now_ms_ = monotonic_ms();
  note_run_beat(now_ms_);
  link_.step(now_ms_);
  g_control.listen_port.store(link_.listen_port(), std::memory_order_relaxed);
  if (link_.take_came_up()) link_came_up();
  note_link();
  bool moved = false;
  switches_.look(now_ns(), recording_.is_running(), shipper_.end_ns());
  clocks_.look(now_ns(), recording_.is_running());
  shipper_.note_switches(switches_.known_until_ns(), switches_.lost());
  if (link_.control().step == ChannelStep::kOpen) reader_.read(now_ms_);
  if (start_filter_.is_wanted()) ask_for_filter();
  if (link_.is_up() && read_data()) moved = ship();
  if (shipper_.streams().spool().is_open()) pauses_.note_blocking();
  if (shipper_.spool_pages(link_.is_up(), now_ms_)) moved = true;
  prepare_pages();
  answer_at_exit();
  do_housekeeping();
  if (link_.control().step == ChannelStep::kOpen) (void)link_.flush(now_ms_, link_.control());
  wait(moved);
}

// The thread waits for the answer and asks for a stop next, or ends: it is not kept waiting twice.
void DrainThread::answer_at_exit() {
  const uint32_t thread = g_control.exit_thread.exchange(0, std::memory_order_acquire);
  if (thread == 0) return;
  const bool filtered = is_filtered(0, thread);
  g_control.at_exit.store(filtered ? AtExit::kMustNotCall : AtExit::kMayCall,
                          std::memory_order_release);
  exit_answered_ms_ = now_ms_;
}

void DrainThread::note_link() {
  if (!link_.is_up()) {
    commands_.link_is_down();
    start_filter_.link_is_down();
  }
  if (link_.control().step != ChannelStep::kOpen) commands_.control_is_closed();
  g_control.connected.store(link_.is_up(), std::memory_order_relaxed);
  note_run_link(link_.is_up());
}

// A process that was refused is a loss of its run if it has something to record.
bool DrainThread::must_see_first_event() const {
  return recording_.is_running() && run_waits_for_first_event() &&
         !g_control.stop.load(std::memory_order_acquire);
}

// Whether the thread may end: at once when nothing is left to say, at the deadline in any case.
bool DrainThread::finished() {
  // Without a collector to come, everything recorded would be for no one.
  if (!link_.is_up() && is_run_over()) return true;
  if (link_.given_up() && !must_see_first_event()) return true;
  if (traced_ != nullptr) watch_process();
  if (!g_control.stop.load(std::memory_order_acquire)) return false;
  now_ms_ = monotonic_ms();
  const uint64_t deadline_ms = g_control.stop_deadline_ms.load(std::memory_order_relaxed);
  if (!stop_seen_) {
    stop_seen_ = true;
    up_since_stop_ = link_.is_up();
    rounds_failed_at_stop_ = link_.rounds_failed();
    if (settings_.role == Role::kConnect) link_.retry_now();
    commands_.stop();
    if (recording_.is_running()) end_with_process();
  }
  recording_.end_kept(now_ms_);
  if (recording_.phase() == Phase::kEnding) {
    if (now_ms_ < deadline_ms && !may_give_up()) return false;
    if (now_ms_ >= deadline_ms) allow_waiting(false);
  }
  if (!link_.is_up()) return true;
  if (!goodbye_said_) {
    goodbye_said_ = true;
    closed_until_ms_ = now_ms_ + kGoodbyeReadMs;
    link_.expect_end();
    collect_wire_Bye bye = collect_wire_Bye_init_zero;
    copy_utf8(bye.reason, sizeof bye.reason, "exit", 4);
    sender_.send(now_ms_, wire::FrameType::kBye, collect_wire_Bye_fields, &bye);
  }
  // The collector closes the link when it has read the Bye. Closing before that may lose the Bye: a
  // socket with unread bytes resets the connection, and through adb data may end first.
  return now_ms_ >= (link_.control().out.is_empty() ? closed_until_ms_ : deadline_ms + kGoodbyeMs);
}

// Before the deadline: whether a collector for what is left can't be expected.
bool DrainThread::may_give_up() const {
  // A collector that was there will be back. One that was not gets one more chance, if it is us
  // who connect.
  if (link_.is_up() || up_since_stop_ || link_.is_opening()) return false;
  if (link_.collector_returns(now_ms_)) return false;
  // A cable that was pulled just now may be put back.
  if (was_ever_up_ && now_ms_ - link_.down_since_ms() < settings_.exit_flush_ms) return false;
  if (settings_.role == Role::kConnect && link_.rounds_failed() == rounds_failed_at_stop_) {
    return false;
  }
  if (!process_over_) return true;
  const RecorderStats stats = recorder_stats();
  return !was_ever_up_ && stats.recorded + stats.lost + stats.lost_without_stream == 0;
}

// A vfork child that ends by _exit() leaves its code too, in its parent's memory. Its parent goes
// on.
uint64_t DrainThread::noted_exit_code() const {
  const uint64_t code = g_control.exit_code.load(std::memory_order_acquire);
  const uint64_t until_ns = g_control.exit_ns.load(std::memory_order_relaxed) + kExitingNs;
  return newest_event_ns() < until_ns ? code : 0;
}

// The end of the process is a stop that no one waits for.
void DrainThread::watch_process() {
  if (process_over_) return;
  const TracedProcess::Life life = traced_->look(monotonic_ms(), noted_exit_code());
  if (life == TracedProcess::Life::kLives) return;
  if (!writers_settled_) {
    writers_settled_ = true;
    settle_dead_writers();
    if (settings_.log) drop_errors();
  }
  if (life != TracedProcess::Life::kEnded) return;
  process_over_ = true;
  request_stop(settings_.exit_flush_ms);
}

void DrainThread::end_with_process() {
  if (process_over_) {
    recording_.end_with_process(traced_->reason(), &traced_->end());
    return;
  }
  const uint64_t exit_code = g_control.exit_code.load(std::memory_order_acquire);
  collect_wire_ProcessEnd end = collect_wire_ProcessEnd_init_zero;
  end.how = collect_wire_ProcessEnd_How_EXITED;
  end.exit_code = static_cast<int32_t>(exit_code & 0xFF);
  recording_.end_with_process("exit", (exit_code & kExitCodeKnown) != 0 ? &end : nullptr);
}

void DrainThread::link_came_up() {
  up_since_stop_ = true;  // also one that breaks before the next check
  was_ever_up_ = true;
  shipper_.begin_link(link_.resumed(), link_.features());
  reports_.begin_link(now_ms_);
  busy_ms_ = now_ms_;
  allow_waiting(true);
}

void DrainThread::ask_for_filter() {
  start_filter_.say_if_late();
  if (!link_.is_up()) return;
  if (start_filter_.ask(link_.features(), link_.control().out)) {
    (void)link_.flush(now_ms_, link_.control());
  }
}

// True while the link is up.
bool DrainThread::read_data() {
  Channel& data = link_.data();
  if (!link_.read(now_ms_, data)) return false;
  wire::Frame frame;
  while (link_.next_frame(now_ms_, data, frame)) {
    if (frame.type == wire::FrameType::kRefuse) {
      link_.refused(now_ms_, data, frame.body);
    } else if (wire::is_known(frame.type)) {
      link_.refuse(now_ms_, data, collect_wire_RefuseCode_REFUSE_PROTOCOL,
                   "not what a collector says on the data channel");
    }
  }
  return link_.is_up();
}

// Sends for a while; the control channel is looked at between two writes.
bool DrainThread::ship() {
  bool moved = false;
  for (uint32_t i = 0; i < kPumpsPerRound && link_.is_up(); ++i) {
    const PumpStatus status = shipper_.pump(link_.data().socket, link_.data().out, now_ms_);
    if (status == PumpStatus::kBroken) {
      link_.break_link(now_ms_, "pages can't be sent");
      return false;
    }
    if (status != PumpStatus::kMoved) break;
    moved = true;
    prepare_pages();
    reader_.read(now_ms_);
  }
  if (shipper_.take_flush_done()) commands_.flush_is_done(now_ms_);
  return moved;
}

void DrainThread::do_housekeeping() {
  if (now_ms_ >= poll_threads_at_ms_) {
    poll_threads_at_ms_ = now_ms_ + kPollThreadsMs;
    if (recording_.is_running()) poll_threads();
    if (traced_ == nullptr && !leaves_process_ && only_this_thread_left()) {
      leaves_process_ = true;
      g_control.exit_code.store(kExitCodeKnown, std::memory_order_relaxed);
      request_stop(settings_.exit_flush_ms);
    }
  }
  if (now_ms_ >= calibrate_at_ms_) {
    calibrate_at_ms_ = now_ms_ + kCalibrateMs;
    recalibrate_clock();
    note_stats();
  }
  detail_.end_when_due(now_ns(), recording_.is_running());
  recording_.end_at_limit(now_ms_, now_ns());
  reports_.send_due(now_ms_);
  if (!link_.is_up()) {
    if (page_wait_timed_out()) allow_waiting(false);
    return;
  }
  if (link_.is_silent(now_ms_))
    link_.break_link(now_ms_, "nothing was received from it for too long");
}

void DrainThread::note_stats() {
  const RecorderStats stats = recorder_stats();  // publishes them for other threads
  recording_.count(stats);
  const uint64_t left = stats.buffer_used + shipper_.streams().spool().bytes();
  if (!process_over_ || left >= least_left_) return;
  // A collector that takes it, however slowly, is not one that is away.
  least_left_ = left;
  request_stop(settings_.exit_flush_ms);
}

// Whether threads that wait for a free page have waited long enough for someone to take one.
bool DrainThread::page_wait_timed_out() const {
  uint64_t since_ms = link_.down_since_ms();
  const Spool& spool = shipper_.streams().spool();
  if (spool.limit() != 0) {
    if (spool.full_since_ms() == 0) return false;
    if (spool.full_since_ms() > since_ms) since_ms = spool.full_since_ms();
  }
  return now_ms_ - since_ms > kPageWaitTimeoutMs;
}

// How long no one needs this thread, unless a socket says so.
int DrainThread::wait_ms() const {
  if (start_filter_.is_wanted() && g_control.holds.load(std::memory_order_relaxed)) return 1;
  if (exit_answered_ms_ != 0 && now_ms_ - exit_answered_ms_ < kBusyMs) return 1;
  const Phase phase = recording_.phase();
  if (stop_seen_ && phase != Phase::kEnding && !link_.is_up()) return 0;  // nothing is left to do
  if (stop_seen_) return process_over_ && !link_.is_up() ? kIdleWaitMs : 1;
  if (phase == Phase::kIdle) return kOffWaitMs;
  if (!link_.is_up() && !shipper_.streams().spool().is_open()) return kIdleWaitMs;
  if (now_ms_ - busy_ms_ < kBusyMs) return 1;
  // A thread that finds no page keeps its processor until it is allowed to sleep.
  if (full_policy() == FullPolicy::kWait && buffer_used_beyond(kNearlyFullPercent)) return 1;
  // A program fills about a gigabyte a second at most: half of the buffer is still free afterwards.
  const auto half_full_ms = static_cast<int>(settings_.buffer_mb / 2);
  if (half_full_ms < 1) return 1;
  return half_full_ms < kIdleWaitMs ? half_full_ms : kIdleWaitMs;
}

void DrainThread::wait(bool moved) {
  if (shipper_.take_filled_page() || shipper_.stalls().must_gather_soon()) busy_ms_ = now_ms_;
  pauses_.look_for_stop(now_ms_, recording_.is_running());
  pauses_.look(read_pauses(), 0, recording_.is_running());
  if (moved) return;
  int timeout_ms = wait_ms();
  for (const uint64_t due_ns : {detail_.until_ns(), recording_.until_ns()}) {
    if (due_ns == 0) continue;
    const uint64_t now = now_ns();
    const uint64_t left_ms = due_ns > now ? (due_ns - now) / 1000000 + 1 : 0;
    if (left_ms < static_cast<uint64_t>(timeout_ms)) timeout_ms = static_cast<int>(left_ms);
  }
  pollfd descriptors[kMaxLinkPolls + 1];
  size_t count = link_.fill_poll(descriptors, now_ms_, shipper_.wants_to_write());
  pollfd* process = nullptr;
  if (traced_ != nullptr) {
    if (timeout_ms > static_cast<int>(kWatchMs)) timeout_ms = static_cast<int>(kWatchMs);
    process = &descriptors[count++];
    *process = {traced_->poll_fd(), POLLIN, 0};
  }
  (void)sys::poll(descriptors, static_cast<nfds_t>(count), timeout_ms);
  pauses_.look(read_pauses(), static_cast<uint64_t>(timeout_ms) * 1000000, recording_.is_running());
  if (process != nullptr && process->revents != 0) traced_->look_soon();
}

}  // namespace collect::agent
