// One function: its times, who called it and what it called.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/tui/capture.h"
#include "daemon/ctl/tui/page.h"

namespace collect::ctl::tui {

class FunctionPage final : public Page {
 public:
  // `capture` outlives it.
  FunctionPage(Capture& capture, const ReportRow& function);

  Kind kind() const override { return Kind::kFunction; }
  std::string title() const override;
  std::string keys() const override;
  std::string heading(size_t columns) const override;
  size_t size() const override { return rows_.size(); }
  std::string line(size_t row, size_t columns) const override;
  bool is_section(size_t row) const override { return !rows_[row].is_neighbour; }
  std::string below(size_t row) const override;
  std::optional<uint64_t> function() const override { return function_.id; }
  Target enter() override;

 private:
  struct Row {
    std::string text;  // of a section or of figures
    bool is_neighbour = false;
    Neighbour neighbour;
  };

  void add_figures(const Capture& capture);
  void add_neighbours(const std::string& section, std::vector<Neighbour> neighbours);
  void add_itself();

  ReportRow function_;
  std::vector<Row> rows_;
};

}  // namespace collect::ctl::tui
