// The functions of a capture, by a column.
#pragma once

#include <vector>

#include "daemon/ctl/tui/capture.h"
#include "daemon/ctl/tui/page.h"

namespace collect::ctl::tui {

// `row` as lines below a list show it: the name, and where the function is in its source.
std::string whole_name(const ReportRow& row);

class FunctionTable final : public Page {
 public:
  // `capture` outlives it.
  FunctionTable(const Capture& capture, ReportSort sort);

  Kind kind() const override { return Kind::kFunctions; }
  std::string title() const override;
  std::string keys() const override;
  std::string heading(size_t columns) const override;
  size_t size() const override { return rows_.size(); }
  std::string line(size_t row, size_t columns) const override;
  std::string below(size_t row) const override { return whole_name(rows_[row]); }
  std::string searched(size_t row) const override { return rows_[row].name; }
  std::optional<uint64_t> function() const override;
  Target enter() override;
  bool press(const KeyPress& key) override;

  ReportSort sort() const { return sort_; }

 private:
  struct Column {
    ReportSort sort;
    const char* heading;
    size_t width;
  };

  std::vector<Column> all_columns() const;
  // Those that there is room for, in their order.
  std::vector<Column> columns_in(size_t columns) const;
  void put_cell(TextBuffer& out, const ReportRow& row, const Column& column) const;
  // The column of times that the table begins with, as a part of the whole.
  ReportSort share_sort() const;
  void sort_by(ReportSort sort);

  const Capture& capture_;
  ReportSort sort_;
  std::vector<ReportRow> rows_;
};

}  // namespace collect::ctl::tui
