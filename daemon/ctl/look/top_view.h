// What `collectctl top` shows, and what its keys do: without a terminal and without a collector.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ctl/look/top.h"

namespace collect::ctl {

struct TopView {
  control::v1::Session session;
  control::v1::CallBatch batch;
  double seconds = 0;  // that `batch` is about
  double stored_bytes_per_second = 0;
  uint64_t spooled_bytes = 0;  // of its agent
  TopSort sort = TopSort::kCpu;
  std::string filter;      // functions and threads whose name has it
  bool is_typing = false;  // the filter
  bool shows_threads = false;
  bool is_paused = false;

  // A key of the keyboard; false: it ends.
  bool press(char key);
  // All lines, without colours. 0: no bound.
  std::vector<std::string> lines(size_t columns, size_t rows) const;

 private:
  void add_head(std::vector<std::string>& lines, size_t columns) const;
  std::string function_table(size_t columns) const;
  std::string thread_table(size_t columns) const;
};

}  // namespace collect::ctl
