// The call graph of all threads together, with folded paths.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/tui/call_graph.h"
#include "daemon/ctl/tui/page.h"

namespace collect::ctl::tui {

class GraphPage final : public Page {
 public:
  // `graph` outlives it; percent are of `whole_ns`.
  GraphPage(const CallGraph& graph, uint64_t whole_ns);

  Kind kind() const override { return Kind::kGraph; }
  std::string title() const override { return "Call graph"; }
  std::string keys() const override;
  std::string heading(size_t columns) const override;
  size_t size() const override { return visible_.size(); }
  std::string line(size_t row, size_t columns) const override;
  std::string below(size_t row) const override;
  std::optional<uint64_t> function() const override;
  Target enter() override;
  bool press(const KeyPress& key) override;
  // Among folded ones, too, which are unfolded.
  bool find(const SearchText& text, bool forward) override;

 private:
  void list_visible();
  void set_unfolded(uint32_t node, bool unfolded);
  void unfold_below(uint32_t node);
  void fold_all();
  // Unfolds what is above it.
  void choose_node(uint32_t node);
  void move_left(uint32_t node);
  void move_right(uint32_t node);

  const CallGraph& graph_;
  const uint64_t whole_ns_;
  std::vector<bool> unfolded_;     // by node
  std::vector<uint32_t> visible_;  // nodes, in their order
};

}  // namespace collect::ctl::tui
