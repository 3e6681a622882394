#include "storage/export/viewers/call_tree_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "formats/calls/call_tree.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/hex.h"
#include "formats/folded/writer.h"
#include "formats/pprof/writer.h"
#include "storage/export/function_names.h"
#include "storage/read/lod_files.h"

namespace collect::exports {
namespace {

using calls::CallTree;

constexpr std::string_view kStalled = "[stalled]";  // time in which the thread did not run
constexpr std::string_view kBehindLoss = "[caller lost]";
constexpr std::string_view kOther = "[other stacks]";
constexpr std::string_view kDeeper = "[deeper calls]";

// A stack is in the file with each of its frames, so a recursion of depth n would take n * n /
// 2 of them. Beyond kMaxFrames the calls of a stack are one frame; where a file would still have
// more than kFramesPerStack for each stack and kFreeFrames besides, earlier.
constexpr uint32_t kMaxFrames = 1024;
constexpr uint64_t kFramesPerStack = 128;
constexpr uint64_t kFreeFrames = uint64_t{1} << 22;

// A call tree that is walked from its root, children in the order of their first calls.
class TreeWalk {
 public:
  explicit TreeWalk(const CallTree& tree)
      : nodes_(tree.nodes()), first_child_(nodes_.size()), next_(nodes_.size()) {
    for (auto i = static_cast<uint32_t>(nodes_.size() - 1); i >= CallTree::kLost; --i) {
      next_[i] = first_child_[nodes_[i].parent];
      first_child_[nodes_[i].parent] = i;
    }
  }

  // enter(number, node), children, leave(number, node): of all but the root.
  template <class Enter, class Leave>
  void run(Enter&& enter, Leave&& leave) const {
    uint32_t at = first_child_[CallTree::kRoot];
    while (at != 0) {
      enter(at, nodes_[at]);
      if (first_child_[at] != 0) {
        at = first_child_[at];
        continue;
      }
      for (;;) {
        leave(at, nodes_[at]);
        if (next_[at] != 0) {
          at = next_[at];
          break;
        }
        at = nodes_[at].parent;
        if (at == CallTree::kRoot) return;
      }
    }
  }

 private:
  const std::vector<CallTree::Node>& nodes_;
  std::vector<uint32_t> first_child_;  // 0: none
  std::vector<uint32_t> next_;         // of the same parent
};

// The stacks of one tree: which nodes are frames, and how many of a stack are written.
class Stacks {
 public:
  Stacks(ExportedSession& session, const CallTree& tree, const FunctionNames& names)
      : nodes_(tree.nodes()), frames_(nodes_.size()) {
    for (uint32_t i = CallTree::kLost; i < nodes_.size(); ++i) {
      // The two that are no function always have a frame of their own.
      const bool is_wanted =
          i < CallTree::kFirstFunction || session.functions.wants(names.id_of(nodes_[i].slot));
      frames_[i] = frames_[nodes_[i].parent] + (is_wanted ? 1 : 0);
    }
  }

  bool is_wanted(uint32_t number) const {
    return frames_[number] != frames_[nodes_[number].parent];
  }
  size_t count() const { return nodes_.size(); }

  // The most frames of a stack, up to kMaxFrames, with which all stacks together have at most
  // `room`, at least 1; what they have is taken from it.
  uint32_t take_most(uint64_t& room) const {
    std::vector<uint64_t> stacks(kMaxFrames + 2);  // by their frames; the last: more than those
    for (const uint32_t frames : frames_) ++stacks[std::min(frames, kMaxFrames + 1)];
    uint64_t all = 0;
    uint32_t most = 0;
    while (most < kMaxFrames && stacks[most + 1] != 0) {
      const uint64_t of_next = stacks[most + 1] * (most + 1);
      if (most != 0 && all + of_next > room) break;
      all += of_next;
      ++most;
    }
    room -= std::min(room, all);
    return std::max<uint32_t>(most, 1);
  }

 private:
  const std::vector<CallTree::Node>& nodes_;
  std::vector<uint32_t> frames_;  // by node: of its stack
};

// What a file has of its call trees, stack by stack. `Frames` has push(number, node), weigh(times)
// of the frame that was pushed last, by its calls and own times, push_deeper() and pop().
class StackExport {
 public:
  template <class Frames>
  void add(ExportedSession& session, const CallTree& tree, const FunctionNames& names,
           Frames& frames) {
    other_ += tree.nodes()[CallTree::kOther].times.calls;
    const Stacks stacks(session, tree, names);
    room_ += stacks.count() * kFramesPerStack;
    const uint32_t most = stacks.take_most(room_);
    uint32_t depth = 0;   // frames that were pushed
    uint32_t beyond = 0;  // those around that were not, because there are `most`
    calls::GroupTimes deeper;
    TreeWalk(tree).run(
        [&](uint32_t number, const CallTree::Node& node) {
          const bool is_wanted = stacks.is_wanted(number);
          if (is_wanted && depth == most) {
            ++beyond;
          } else if (is_wanted) {
            ++depth;
            frames.push(number, node);
          }
          calls::GroupTimes times = node.times;
          if (!is_wanted) times.calls = 0;
          if (beyond != 0) {
            deeper.add(times);
          } else if (depth != 0) {
            frames.weigh(times);
          }
        },
        [&](uint32_t number, const CallTree::Node&) {
          if (!stacks.is_wanted(number)) return;
          if (beyond != 0) {
            --beyond;
            return;
          }
          if (deeper.calls != 0 || deeper.self_ns != 0) {
            (most == kMaxFrames ? deeper_ : cut_) += deeper.calls;
            frames.push_deeper();
            frames.weigh(deeper);
            frames.pop();
            deeper = {};
          }
          --depth;
          frames.pop();
        });
  }

  void report(convert::ConvertLog& log) const {
    const std::string folded =
        fmt::format(": they are one frame, {}; chrome and parquet have each of them", kDeeper);
    log.leave_out(fmt::format("calls nested deeper than {}{}", kMaxFrames, folded), deeper_);
    log.leave_out(fmt::format("calls of more stacks than {} of a thread: they are one frame, {}",
                              CallTree::kMaxNodes, kOther),
                  other_);
    log.leave_out("calls nested so deep that the file would grow out of proportion" + folded, cut_);
  }

 private:
  uint64_t room_ = kFreeFrames;
  uint64_t deeper_ = 0;
  uint64_t cut_ = 0;
  uint64_t other_ = 0;
};

struct ThreadResult {
  uint32_t n = 0;
  uint32_t tid = 0;
  calls::ThreadCounts counts;
};

// f(thread, tree, slots) for each thread of the session that can be read.
template <class F>
Status for_each_tree(ExportedSession& session, convert::ConvertLog& log, F&& f) {
  calls::FunctionSlots slots;
  calls::ThreadCounts all;
  for (size_t i = 0; i < session.reader.threads().size(); ++i) {
    log.progress(i, session.reader.threads().size());
    const atf::SessionThread& thread = session.reader.threads()[i];
    if (!thread.index) continue;
    CallTree tree;
    std::vector<uint32_t> reasons;
    const std::vector<calls::Stall> stalls = session.stalls_of(thread.n);
    calls::ThreadCalls<CallTree> calls(slots, tree, stalls, session.window());
    read::read_calls(session.trace.thread(thread.n), *thread.index,
                     session.gaps_of(thread.n, reasons), stalls, session.window(), calls);
    const ThreadResult result{thread.n, thread.index->header().thread_id, calls.counts()};
    all.add(calls.counts());
    COLLECT_TRY(f(result, tree, slots));
    session.drop_pages(thread.n);
  }
  log.count("events", all.events);
  log.count("calls", all.calls);
  if (all.lost_events != 0) {
    log.count("lost_events", all.lost_events);
    log.remark(with_thousands(all.lost_events) +
               " events were lost while recording: times around them are estimates");
  }
  log.leave_out("returns without a call", all.lone_ends);
  log.leave_out("calls nested deeper than can be followed", all.too_deep);
  log.leave_out("events of an unknown kind", all.unknown_kinds);
  return {};
}

// A module's file in the profile.
struct Mapping {
  uint64_t id;
  uint64_t base;
};

std::string name_of_thread(const ExportedSession& session, const ThreadResult& thread) {
  const std::string name = session.name_of_thread(thread.n);
  return name.empty() ? fmt::format("thread {}", thread.tid) : name;
}

std::string_view name_of_node(uint32_t number, const CallTree::Node& node,
                              const FunctionNames& names) {
  if (number == CallTree::kLost) return kBehindLoss;
  if (number == CallTree::kOther) return kOther;
  return names.of(node.slot);
}

class FoldedFrames {
 public:
  FoldedFrames(folded::Writer& writer, const FunctionNames& names, TimeValue value)
      : writer_(writer), names_(names), value_(value) {}
  void push(uint32_t number, const CallTree::Node& node) {
    writer_.push(name_of_node(number, node, names_));
  }
  void push_deeper() { writer_.push(kDeeper); }
  void weigh(const calls::GroupTimes& times) {
    const uint64_t waited_ns = times.waited.self_ns;
    writer_.weigh(value_ == TimeValue::kWall  ? times.self_ns
                  : value_ == TimeValue::kCpu ? times.self_ns - waited_ns
                                              : waited_ns);
  }
  void pop() { writer_.pop(); }

 private:
  folded::Writer& writer_;
  const FunctionNames& names_;
  const TimeValue value_;
};

// The frames of one session in a profile. A location is added when it is first used.
class ProfileFrames {
 public:
  ProfileFrames(pprof::Writer& writer, const ExportedSession& session) : writer_(writer) {
    for (const storage::ModuleInfo& module : session.about.modules) {
      if (module.size == 0) continue;
      const uint64_t base = module.base_address;
      mappings_[module.module_id] = {
          writer.add_mapping({base, base + module.size, module.path, hex_bytes(module.build_id)}),
          base};
    }
  }

  // `names` outlives the pushes; slots that are known already keep their numbers.
  void use(const FunctionNames& names, size_t slots) {
    names_ = &names;
    locations_.resize(slots);
  }
  void push(uint32_t number, const CallTree::Node& node) {
    if (number < CallTree::kFirstFunction) {
      writer_.push(special(special_[number], name_of_node(number, node, *names_)));
    } else {
      writer_.push(location(node.slot));
    }
  }
  void push_deeper() { writer_.push(special(deeper_, kDeeper)); }
  void push_stalled() { writer_.push(special(stalled_, kStalled)); }
  void weigh(const calls::GroupTimes& times) {
    writer_.sample(times.calls, times.self_ns, times.self_ns - times.waited.self_ns);
  }
  // On no processor.
  void weigh_stalls(const calls::ThreadCounts& counts) {
    writer_.sample(counts.stalls, counts.stalled_ns);
  }
  void pop() { writer_.pop(); }

 private:
  uint64_t special(uint64_t& known, std::string_view name) {
    if (known == 0) known = writer_.add_location(name);
    return known;
  }
  uint64_t location(uint32_t slot) {
    if (locations_[slot] != 0) return locations_[slot];
    const uint64_t id = names_->id_of(slot);
    const auto loaded = mappings_.find(id >> 32);
    const uint64_t mapping = loaded == mappings_.end() ? 0 : loaded->second.id;
    const uint64_t address =
        loaded == mappings_.end() ? 0 : loaded->second.base + (id & UINT32_MAX);
    const read::SourceLocation* source = names_->source_of(slot);
    locations_[slot] = source == nullptr ? writer_.add_location(names_->of(slot), mapping, address)
                                         : writer_.add_location(names_->of(slot), mapping, address,
                                                                source->file, source->line);
    return locations_[slot];
  }

  pprof::Writer& writer_;
  const FunctionNames* names_ = nullptr;
  std::unordered_map<uint64_t, Mapping> mappings_;  // by module id
  // Ids of locations; 0: none yet.
  std::vector<uint64_t> locations_;  // by slot
  uint64_t special_[CallTree::kFirstFunction] = {};
  uint64_t deeper_ = 0;
  uint64_t stalled_ = 0;
};

}  // namespace

Status export_folded(ExportedSessions& sessions, TimeValue value, ByteSink& out,
                     convert::ConvertLog& log) {
  folded::Writer writer(out);
  StackExport stacks;
  for (const auto& session : sessions) {
    const std::string device = sessions.size() == 1 ? "" : session->device();
    writer.push(device.empty() ? session->name_of_process()
                               : fmt::format("{}: {}", device, session->name_of_process()));
    COLLECT_TRY(for_each_tree(
        *session, log,
        [&](const ThreadResult& thread, const CallTree& tree, const calls::FunctionSlots& slots) {
          const FunctionNames names(session->names, slots);
          writer.push(name_of_thread(*session, thread));
          FoldedFrames frames(writer, names, value);
          stacks.add(*session, tree, names, frames);
          writer.push(kStalled);
          writer.weigh(value == TimeValue::kWall ? thread.counts.stalled_ns : 0);
          writer.pop();
          writer.pop();
          return writer.status();
        }));
    writer.pop();
  }
  stacks.report(log);
  return writer.finish();
}

Status export_pprof(ExportedSessions& sessions, ByteSink& out, convert::ConvertLog& log) {
  const bool has_cpu = std::all_of(sessions.begin(), sessions.end(), [](const auto& session) {
    return session->manifest.identity.switches;
  });
  pprof::Writer writer(out, has_cpu);
  StackExport stacks;
  std::vector<std::string> comments;
  uint64_t duration_ns = 0;
  for (const auto& session : sessions) {
    const storage::SessionIdentity& identity = session->about.identity;
    ProfileFrames frames(writer, *session);
    COLLECT_TRY(for_each_tree(
        *session, log,
        [&](const ThreadResult& thread, const CallTree& tree, const calls::FunctionSlots& slots) {
          const FunctionNames names(session->names, slots);
          frames.use(names, slots.size());
          writer.set_labels({{"process", session->name_of_process()},
                             {"device", session->device()},
                             {"thread", name_of_thread(*session, thread)}});
          stacks.add(*session, tree, names, frames);
          if (thread.counts.stalled_ns != 0) {
            frames.push_stalled();
            frames.weigh_stalls(thread.counts);
            frames.pop();
          }
          return writer.status();
        }));
    const auto range = session->time_range(session->window());
    if (range) duration_ns = std::max(duration_ns, range->last_ns - range->first_ns);
    comments.push_back(fmt::format("function calls of {}, pid {}, recorded by collectord",
                                   session->name_of_process(), identity.pid));
  }
  stacks.report(log);
  for (const std::string& remark : log.remarks()) comments.push_back(remark);
  const uint64_t start_unix_ns = sessions.front()->about.identity.start_unix_ns;
  return writer.finish(start_unix_ns, duration_ns, comments);
}

}  // namespace collect::exports
