#include "daemon/ctl/export/call_tree_export.h"

#include <algorithm>
#include <unordered_map>

#include "daemon/ctl/export/function_names.h"
#include "formats/calls/call_tree.h"
#include "formats/core/figures.h"
#include "formats/core/hex.h"
#include "formats/folded/writer.h"
#include "formats/pprof/writer.h"
#include "storage/trace/lod_files.h"

namespace collect::ctl {
namespace {

using calls::CallTree;

constexpr std::string_view kStalled = "[stalled]";  // time in which the thread did not run
constexpr std::string_view kBehindLoss = "[caller lost]";
constexpr std::string_view kOther = "[other stacks]";

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
    trace::read_calls(session.trace.thread(thread.n), *thread.index,
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
  return name.empty() ? "thread " + std::to_string(thread.tid) : name;
}

std::string_view name_of_node(uint32_t number, const CallTree::Node& node,
                              const FunctionNames& names) {
  if (number == CallTree::kLost) return kBehindLoss;
  if (number == CallTree::kOther) return kOther;
  return names.of(node.slot);
}

// Whether a node has a frame of its own: the two that are no function always have.
bool is_wanted(ExportedSession& session, uint32_t number, const CallTree::Node& node,
               const FunctionNames& names) {
  return number < CallTree::kFirstFunction || session.functions.wants(names.id_of(node.slot));
}

}  // namespace

Status export_folded(ExportedSessions& sessions, ByteSink& out, convert::ConvertLog& log) {
  folded::Writer writer(out);
  for (const auto& session : sessions) {
    const std::string device = sessions.size() == 1 ? "" : session->device();
    writer.push(device.empty() ? session->name_of_process()
                               : device + ": " + session->name_of_process());
    COLLECT_TRY(for_each_tree(
        *session, log,
        [&](const ThreadResult& thread, const CallTree& tree, const calls::FunctionSlots& slots) {
          const FunctionNames names(session->names, slots);
          writer.push(name_of_thread(*session, thread));
          size_t functions = 0;  // wanted ones around
          TreeWalk(tree).run(
              [&](uint32_t number, const CallTree::Node& node) {
                if (is_wanted(*session, number, node, names)) {
                  writer.push(name_of_node(number, node, names));
                  ++functions;
                }
                if (functions != 0) writer.weigh(node.times.self_ns);
              },
              [&](uint32_t number, const CallTree::Node& node) {
                if (!is_wanted(*session, number, node, names)) return;
                writer.pop();
                --functions;
              });
          writer.push(kStalled);
          writer.weigh(thread.counts.stalled_ns);
          writer.pop();
          writer.pop();
          return writer.status();
        }));
    writer.pop();
  }
  return writer.finish();
}

Status export_pprof(ExportedSessions& sessions, ByteSink& out, convert::ConvertLog& log) {
  pprof::Writer writer(out);
  std::vector<std::string> comments;
  uint64_t duration_ns = 0;
  for (const auto& session : sessions) {
    const storage::SessionIdentity& identity = session->about.identity;
    std::unordered_map<uint64_t, Mapping> mappings;  // by module id
    for (const storage::ModuleInfo& module : session->about.modules) {
      if (module.size == 0) continue;
      const uint64_t base = module.base_address;
      mappings[module.module_id] = {
          writer.add_mapping({base, base + module.size, module.path, hex_bytes(module.build_id)}),
          base};
    }
    std::vector<uint64_t> locations;  // by slot; 0: none yet
    uint64_t special[CallTree::kFirstFunction] = {};
    uint64_t stalled = 0;
    const auto add_location = [&](uint32_t slot, const FunctionNames& names) {
      if (locations[slot] != 0) return locations[slot];
      const uint64_t id = names.id_of(slot);
      const auto loaded = mappings.find(id >> 32);
      const uint64_t mapping = loaded == mappings.end() ? 0 : loaded->second.id;
      const uint64_t address =
          loaded == mappings.end() ? 0 : loaded->second.base + (id & UINT32_MAX);
      const trace::SourceLocation* source = names.source_of(slot);
      if (source == nullptr) {
        return locations[slot] = writer.add_location(names.of(slot), mapping, address);
      }
      return locations[slot] =
                 writer.add_location(names.of(slot), mapping, address, source->file, source->line);
    };
    COLLECT_TRY(for_each_tree(
        *session, log,
        [&](const ThreadResult& thread, const CallTree& tree, const calls::FunctionSlots& slots) {
          const FunctionNames names(session->names, slots);
          locations.resize(slots.size());
          writer.set_labels({{"process", session->name_of_process()},
                             {"device", session->device()},
                             {"thread", name_of_thread(*session, thread)}});
          TreeWalk(tree).run(
              [&](uint32_t number, const CallTree::Node& node) {
                const bool wanted = is_wanted(*session, number, node, names);
                if (wanted && number < CallTree::kFirstFunction) {
                  if (special[number] == 0)
                    special[number] = writer.add_location(name_of_node(number, node, names));
                  writer.push(special[number]);
                } else if (wanted) {
                  writer.push(add_location(node.slot, names));
                }
                if (writer.depth() != 0)
                  writer.sample(wanted ? node.times.calls : 0, node.times.self_ns);
              },
              [&](uint32_t number, const CallTree::Node& node) {
                if (is_wanted(*session, number, node, names)) writer.pop();
              });
          if (thread.counts.stalled_ns != 0) {
            if (stalled == 0) stalled = writer.add_location(kStalled);
            writer.push(stalled);
            writer.sample(thread.counts.stalls, thread.counts.stalled_ns);
            writer.pop();
          }
          return writer.status();
        }));
    const auto range = session->time_range(session->window());
    if (range) duration_ns = std::max(duration_ns, range->last_ns - range->first_ns);
    comments.push_back("function calls of " + session->name_of_process() + ", pid " +
                       std::to_string(identity.pid) + ", recorded by collectord");
  }
  for (const std::string& remark : log.remarks()) comments.push_back(remark);
  const uint64_t start_unix_ns = sessions.front()->about.identity.start_unix_ns;
  return writer.finish(start_unix_ns, duration_ns, comments);
}

}  // namespace collect::ctl
