#include "storage/export/page/page_names.h"

#include <fmt/core.h>

#include <utility>

namespace collect::exports {

using calls::PathNode;

uint64_t PageNames::number_of(const ExportedSession& session, const FunctionNames& functions,
                              uint32_t slot) {
  const std::string_view name = functions.of(slot);
  const auto [known, is_new] = numbers_.try_emplace(std::string(name), page_.names.size());
  if (is_new) {
    page_.names.emplace_back(name);
    page_.places.emplace_back();
    page_.modules.emplace_back();
  }
  std::string& place = page_.places[known->second];
  const read::SourceLocation* source = place.empty() ? functions.source_of(slot) : nullptr;
  if (source != nullptr) place = fmt::format("{}:{}", source->file, source->line);
  std::string& module = page_.modules[known->second];
  const uint64_t id = functions.id_of(slot);
  if (module.empty() && id != calls::FunctionSlots::kOther) {
    module = session.names.module_name_of(static_cast<uint32_t>(id >> 32));
  }
  return known->second;
}

html::Tree page_tree(const ExportedSession& session, const FunctionNames& functions,
                     PageNames& names, const std::vector<PathNode>& paths) {
  html::Tree page;
  for (uint32_t i = 1; i < paths.size(); ++i) {
    const PathNode& node = paths[i];
    const int64_t name = node.slot == PathNode::kAfterLoss ? html::Tree::kAfterLoss
                         : node.slot == PathNode::kOther
                             ? html::Tree::kOtherPaths
                             : static_cast<int64_t>(names.number_of(session, functions, node.slot));
    page.nodes.push_back({node.parent, name, node.times.total_ns, node.times.self_ns,
                          node.times.calls, node.times.waited.total_ns, node.times.waited.self_ns});
  }
  return page;
}

}  // namespace collect::exports
