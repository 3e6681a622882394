#include "daemon/ctl/report/report_samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/calls/call_tree.h"

namespace collect::ctl {
namespace {

using calls::CallTree;

// What was sampled: the innermost open call, and the place.
using SampledPlace = std::pair<uint32_t, uint64_t>;

// Puts the samples of one thread after the other into the tree of all calls.
class SampledCalls : public calls::CallSink {
 public:
  void begin_thread(std::vector<storage::Stall> samples) {
    samples_ = std::move(samples);
    next_ = depth_ = 0;
  }
  void on_call_begin(const calls::Call& call) {
    take_until(call.begin.ns);
    tree_.on_call_begin(call);
    depth_ = call.depth + 1;
  }
  void on_call_end(const calls::EndedCall& call) {
    take_until(call.end.ns);
    tree_.on_call_end(call);
    depth_ = call.depth;
  }
  void end_thread() { take_until(UINT64_MAX); }

  const CallTree& tree() const { return tree_; }
  const std::map<SampledPlace, uint64_t>& places() const { return places_; }

 private:
  void take_until(uint64_t ns) {
    for (; next_ < samples_.size() && samples_[next_].first_ns < ns; ++next_) {
      const bool is_one = samples_[next_].count == 1;  // of joined ones no one knows the calls
      const uint32_t call = is_one ? tree_.innermost(depth_) : CallTree::kRoot;
      places_[{call, samples_[next_].place}] += samples_[next_].count;
    }
  }

  CallTree tree_;
  std::vector<storage::Stall> samples_;
  size_t next_ = 0;
  size_t depth_ = 0;
  std::map<SampledPlace, uint64_t> places_;
};

// "strtol", of "strtol+0x12"; of a place without a name the module: "[libm.so.6]".
std::string sampled_name(const ReportedCapture& capture, uint64_t place) {
  if (place == 0) return "(not known)";
  if (!capture.names().is_named(place)) {
    return fmt::format("[{}]", capture.names().module_name_of(static_cast<uint32_t>(place >> 32)));
  }
  std::string name = report_name(capture.names(), place);
  const size_t offset = name.rfind("+0x");
  if (offset != std::string::npos) name.resize(offset);
  return name;
}

using PathSamples = std::pair<std::vector<std::string>, uint64_t>;

class SampledPaths {
 public:
  SampledPaths(const ReportedCapture& capture, const calls::FunctionSlots& slots,
               const SampledCalls& sampled)
      : capture_(capture), slots_(slots), sampled_(sampled) {}

  // The most sampled first.
  std::vector<PathSamples> all() const {
    std::map<std::vector<std::string>, uint64_t> paths;
    for (const auto& [place, samples] : sampled_.places()) {
      std::vector<std::string> path = calls_of(place.first);
      std::string name = sampled_name(capture_, place.second);
      if (path.empty() || path.back() != name) path.push_back(std::move(name));
      paths[path] += samples;
    }
    std::vector<PathSamples> sorted(paths.begin(), paths.end());
    std::ranges::stable_sort(sorted, std::ranges::greater(), &PathSamples::second);
    return sorted;
  }

 private:
  std::vector<std::string> calls_of(uint32_t number) const {
    constexpr size_t kMostCalls = 1024;
    std::vector<std::string> path;
    const auto& nodes = sampled_.tree().nodes();
    for (; number != CallTree::kRoot && path.size() < kMostCalls; number = nodes[number].parent) {
      path.push_back(number == CallTree::kLost ? kCallerInDoubtName
                     : number == CallTree::kOther
                         ? kOtherPathsName
                         : report_name(capture_.names(), slots_.function_of(nodes[number].slot)));
    }
    std::ranges::reverse(path);
    return path;
  }

  const ReportedCapture& capture_;
  const calls::FunctionSlots& slots_;
  const SampledCalls& sampled_;
};

std::vector<PathSamples> read_paths(const ReportedCapture& capture, const ReportOptions& options,
                                    const Answer& answer) {
  const auto progress = progress_line(answer.err, options.progress);
  const calls::Window& window = capture.window();
  calls::FunctionSlots slots;
  SampledCalls sampled;
  const auto& threads = capture.threads();
  for (size_t i = 0; i < threads.size(); ++i) {
    progress(i, threads.size());
    const uint32_t n = threads[i]->n;
    std::vector<storage::Stall> samples = capture.times_of(n, storage::StallKind::kSample);
    if (samples.empty()) continue;
    sampled.begin_thread(std::move(samples));
    const std::vector<calls::Gap> gaps = read::call_gaps_of(capture.manifest(), n);
    calls::ThreadCalls<SampledCalls> calls(slots, sampled, {}, window);
    read::read_calls(capture.trace().thread(n), *threads[i]->index, gaps, {}, window, calls);
    sampled.end_thread();
  }
  progress(threads.size(), threads.size());
  return SampledPaths(capture, slots, sampled).all();
}

// The sampled function, and the innermost call that was open; empty: it is that call, or none was.
struct SampledFunction {
  std::string name;
  std::string call;
  auto operator<=>(const SampledFunction&) const = default;
};
using FunctionSamples = std::pair<SampledFunction, uint64_t>;

std::vector<FunctionSamples> functions_of(const std::vector<PathSamples>& paths) {
  std::map<SampledFunction, uint64_t> functions;
  for (const auto& [path, samples] : paths) {
    functions[{path.back(), path.size() > 1 ? path[path.size() - 2] : ""}] += samples;
  }
  std::vector<FunctionSamples> sorted(functions.begin(), functions.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &FunctionSamples::second);
  return sorted;
}

void print_text(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                const std::vector<FunctionSamples>& functions, uint64_t whole) {
  constexpr std::string_view kSampleFigures = "       Samples      %  ";
  put_heading(out, kSampleFigures, "Function, and the call that ran it", options.color);
  const size_t room = columns_left(options.columns, kSampleFigures.size());
  for (size_t i = 0; i < std::min<uint64_t>(options.limit, functions.size()); ++i) {
    const auto& [function, samples] = functions[i];
    out.dec(samples, 14);
    put_percent_cell(out, samples, whole, 7);
    out.put("  ");
    std::string text = printable(function.name);
    if (!function.call.empty()) text += "  in " + printable(function.call);
    out.put(cut_to_end(text, room));
    out.put('\n');
  }
  out.put("# ");
  out.count(whole, "sample");
  out.put(fmt::format(", {} in each second that a thread ran outside of the kernel\n",
                      capture.manifest().identity.sample_hz));
  put_health(out, capture);
}

}  // namespace

int print_report_samples(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                         const Answer& answer) {
  const storage::SessionIdentity& identity = capture.manifest().identity;
  if (identity.sample_hz == 0) {
    return answer.refuse_briefly(
        {Code::kNotFound,
         "there are no samples: " + (identity.no_samples.empty()
                                         ? "collectctl run --sample 1kHz records them"
                                         : identity.no_samples)},
        1);
  }
  const std::vector<PathSamples> paths = read_paths(capture, options, answer);
  uint64_t whole = 0;
  for (const auto& [functions, samples] : paths) whole += samples;
  if (!options.json) {
    print_text(out, capture, options, functions_of(paths), whole);
    return 0;
  }
  Json document = json_document();
  document["path"] = capture.trace().path;
  document["samples"] = whole;
  document["sample_hz"] = identity.sample_hz;
  document["paths"] = Json::array();
  for (size_t i = 0; i < std::min<uint64_t>(options.limit, paths.size()); ++i) {
    document["paths"].push_back({{"functions", paths[i].first}, {"samples", paths[i].second}});
  }
  out.put(json_line(document));
  return 0;
}

}  // namespace collect::ctl
