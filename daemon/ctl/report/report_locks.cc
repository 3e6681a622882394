#include "daemon/ctl/report/report_locks.h"

#include <fmt/core.h>

#include <algorithm>
#include <compare>
#include <map>
#include <mutex>
#include <utility>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kNoFunction = calls::kNoEvent;  // the wait's call is not there, or has no caller

// Waits that have these in common.
struct LockRowKey {
  uint64_t lock = 0;
  uint64_t function = kNoFunction;  // that called the function that waits
  uint32_t owner = 0;
  auto operator<=>(const LockRowKey&) const = default;
};
struct LockTimes {
  uint64_t waits = 0;
  uint64_t waited_ns = 0;
  uint64_t longest_ns = 0;  // of those that were not joined

  void add(const storage::Stall& wait) {
    waits += wait.count;
    waited_ns += wait.stalled_ns;
    if (wait.count == 1) longest_ns = std::max(longest_ns, wait.stalled_ns);
  }
  void add(const LockTimes& other) {
    waits += other.waits;
    waited_ns += other.waited_ns;
    longest_ns = std::max(longest_ns, other.longest_ns);
  }
};
using LockRow = std::pair<LockRowKey, LockTimes>;
using LockTable = std::map<LockRowKey, LockTimes>;

// Finds the functions that waited, for the waits of one thread: each begins with a call.
class WaitingFunctions : public calls::CallSink {
 public:
  WaitingFunctions(const calls::FunctionSlots& slots, const std::vector<storage::Stall>& waits)
      : slots_(slots), waits_(waits), functions_(waits.size(), kNoFunction) {}

  void on_call_begin(const calls::Call& call) {
    open_.resize(call.depth);
    while (next_ < waits_.size() && waits_[next_].first_ns < call.begin.ns) ++next_;
    if (next_ < waits_.size() && waits_[next_].first_ns == call.begin.ns && call.depth != 0 &&
        !call.is_caller_in_doubt) {
      functions_[next_] = slots_.function_of(open_.back());
    }
    open_.push_back(call.slot);
  }
  uint64_t function_of(size_t wait) const { return functions_[wait]; }

 private:
  const calls::FunctionSlots& slots_;
  const std::vector<storage::Stall>& waits_;
  std::vector<uint64_t> functions_;
  std::vector<uint32_t> open_;
  size_t next_ = 0;
};

LockTable table_of_thread(const ReportedCapture& capture, const atf::SessionThread& thread) {
  LockTable table;
  const calls::Window& window = capture.window();
  const std::vector<storage::Stall> waits = capture.times_of(thread.n, storage::StallKind::kLock);
  if (waits.empty()) return table;
  const std::vector<calls::Gap> gaps = read::call_gaps_of(capture.manifest(), thread.n);
  calls::FunctionSlots slots;
  WaitingFunctions functions(slots, waits);
  calls::ThreadCalls<WaitingFunctions> calls(slots, functions, {}, window);
  read::read_calls(capture.trace().thread(thread.n), *thread.index, gaps, {}, window, calls);
  for (size_t i = 0; i < waits.size(); ++i) {
    table[{waits[i].place, functions.function_of(i), waits[i].owner}].add(waits[i]);
  }
  return table;
}

std::vector<LockRow> rows_of(const ReportedCapture& capture) {
  std::mutex mutex;
  LockTable all;
  const auto& threads = capture.threads();
  read::share_work(
      threads.size(), [](size_t, size_t) {},
      [&](size_t, size_t i) {
        const LockTable table = table_of_thread(capture, *threads[i]);
        const std::lock_guard lock(mutex);
        for (const auto& [key, times] : table) all[key].add(times);
      });
  std::vector<LockRow> rows(all.begin(), all.end());
  std::stable_sort(rows.begin(), rows.end(), [](const LockRow& a, const LockRow& b) {
    return a.second.waited_ns > b.second.waited_ns;
  });
  return rows;
}

// "libfoo.so+0x4020" where it is in a module, else "0x5581f0001020".
std::string lock_name(const ReportedCapture& capture, uint64_t lock) {
  if (lock == 0) return "(several locks)";
  for (const storage::ModuleInfo& module : capture.manifest().modules) {
    if (lock - module.base_address < module.size) {
      return fmt::format("{}+{:#x}", capture.names().module_name_of(module.module_id),
                         lock - module.base_address);
    }
  }
  return fmt::format("{:#x}", lock);
}

std::string function_name(const ReportedCapture& capture, uint64_t function) {
  return function == kNoFunction ? kNoCallerName : report_name(capture.names(), function);
}

std::string owner_name(const ReportedCapture& capture, uint32_t owner) {
  if (owner == 0) return "(not known)";
  for (const read::ManifestThread& thread : capture.manifest().threads) {
    if (thread.thread_id == owner && !thread.name.empty()) {
      return fmt::format("{} ({})", thread.name, owner);
    }
  }
  return fmt::format("thread {}", owner);
}

Json row_json(const ReportedCapture& capture, const LockRow& row) {
  const auto& [key, times] = row;
  Json json = {{"waited_ns", times.waited_ns},
               {"waits", times.waits},
               {"longest_ns", times.longest_ns},
               {"name", lock_name(capture, key.lock)},
               {"function", function_name(capture, key.function)},
               {"owner", owner_name(capture, key.owner)}};
  if (key.lock != 0) json["lock"] = fmt::format("{:#x}", key.lock);
  if (key.owner != 0) json["owner_tid"] = key.owner;
  return json;
}

void print_text(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                const std::vector<LockRow>& rows, const LockTimes& whole) {
  constexpr std::string_view kLockFigures = "      Waited      %         Waits       Longest  ";
  put_heading(out, kLockFigures, "Function, the lock that it waited for, and who had that",
              options.color);
  for (size_t i = 0; i < std::min<uint64_t>(options.limit, rows.size()); ++i) {
    const auto& [key, times] = rows[i];
    put_time_cell(out, times.waited_ns);
    put_percent_cell(out, times.waited_ns, whole.waited_ns, 7);
    out.dec(times.waits, 14);
    out.put("  ");
    put_time_cell(out, times.longest_ns);
    out.put("  ");
    out.printable(function_name(capture, key.function));
    out.put("  ");
    out.printable(lock_name(capture, key.lock));
    out.put("  ");
    out.printable(owner_name(capture, key.owner));
    out.put('\n');
  }
  if (whole.waits == 0) {
    out.put("# no wait for a lock was recorded; `collectctl run` records those of 3 us and more\n");
  } else {
    out.put("# ");
    out.count(whole.waits, "wait");
    out.put(", ");
    put_time(out, whole.waited_ns, 0);
    out.put(", of all threads together\n");
  }
  put_health(out, capture);
}

}  // namespace

int print_report_locks(TextOut& out, const ReportedCapture& capture, const ReportOptions& options) {
  const std::vector<LockRow> rows = rows_of(capture);
  LockTimes whole;
  for (const auto& [key, times] : rows) whole.add(times);
  if (!options.json) {
    print_text(out, capture, options, rows, whole);
    return 0;
  }
  Json document = json_document();
  document["path"] = capture.trace().path;
  document["waits"] = whole.waits;
  document["waited_ns"] = whole.waited_ns;
  document["rows"] = Json::array();
  for (size_t i = 0; i < std::min<uint64_t>(options.limit, rows.size()); ++i) {
    document["rows"].push_back(row_json(capture, rows[i]));
  }
  out.put(json_line(document));
  return 0;
}

}  // namespace collect::ctl
