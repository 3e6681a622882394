// What a conversion has to say, in three kinds that are never mixed:
//
//   missing    The input lacks it: cut off, damaged, or not given. Said sentence by sentence on
//              standard error, counted in the manifest of what is made, exit code 1.
//   left out   The input has it and the target has no place for it. One line, exit code 0
//              (--strict: 1).
//   remarks    Neither: what the reader of the output should know. Exit code 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::convert {

class ConvertLog {
 public:
  static constexpr size_t kMaxSaid = storage::kMaxMissingInput;  // sentences of each kind

  explicit ConvertLog(std::function<void(uint64_t done, uint64_t all)> progress = {})
      : progress_(std::move(progress)) {}

  // "damaged pages", so many of them. Repeats of `what` are added up.
  void missing(std::string_view what, uint64_t count) {
    if (count != 0) add_missing(what, count);
  }
  // "the stream breaks off at 12": how much is missing is not known.
  void missing(std::string_view what) { add_missing(what, 0); }
  // What another part of the conversion found.
  void missing(const std::vector<storage::MissingInput>& list, uint64_t not_listed) {
    for (const storage::MissingInput& one : list) add_missing(one.what, one.count);
    missing_left_out_ += not_listed;
  }

  // "detail records: a WTF-trace has no place for registers", so many times.
  void leave_out(std::string_view what, uint64_t count = 1) {
    if (count != 0) left_out_[std::string(what)] += count;
  }

  void remark(std::string sentence) {
    if (remarks_.size() < kMaxSaid) {
      remarks_.push_back(std::move(sentence));
    } else {
      ++remarks_left_out_;
    }
  }

  // A conversion has `steps` equal steps, each of which counts from 0 on.
  void begin_step(uint64_t step, uint64_t steps) {
    step_ = step;
    steps_ = steps;
  }
  void progress(uint64_t done, uint64_t all) const {
    if (progress_) progress_(step_ * all + done, steps_ * all);
  }
  // Bytes written, files made: for the last line.
  void wrote(std::string path, uint64_t bytes) { written_.emplace_back(std::move(path), bytes); }
  std::vector<std::pair<std::string, uint64_t>> take_written() {
    return std::exchange(written_, {});
  }
  void count(std::string_view what, uint64_t number) { counts_[std::string(what)] += number; }

  // What `part`, a step of this conversion, had to say about input and target.
  void take(const ConvertLog& part) {
    missing(part.missing_, part.missing_left_out_);
    for (const auto& [what, count] : part.left_out_) leave_out(what, count);
    for (const std::string& sentence : part.remarks_) remark(sentence);
    remarks_left_out_ += part.remarks_left_out_;
  }

  const std::vector<storage::MissingInput>& missing() const { return missing_; }
  uint64_t missing_left_out() const { return missing_left_out_; }
  bool is_input_whole() const { return missing_.empty(); }
  const std::map<std::string, uint64_t>& left_out() const { return left_out_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  uint64_t remarks_left_out() const { return remarks_left_out_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }
  const std::vector<std::pair<std::string, uint64_t>>& written() const { return written_; }

 private:
  void add_missing(std::string_view what, uint64_t count) {
    const auto known = std::find_if(missing_.begin(), missing_.end(),
                                    [what](const auto& one) { return one.what == what; });
    if (known != missing_.end()) {
      known->count += count;
    } else if (missing_.size() < kMaxSaid) {
      missing_.push_back({std::string(what), count});
    } else {
      ++missing_left_out_;
    }
  }

  std::function<void(uint64_t, uint64_t)> progress_;
  uint64_t step_ = 0;
  uint64_t steps_ = 1;
  std::vector<storage::MissingInput> missing_;  // in the order in which it was found
  uint64_t missing_left_out_ = 0;
  std::map<std::string, uint64_t> left_out_;
  std::vector<std::string> remarks_;
  uint64_t remarks_left_out_ = 0;
  std::map<std::string, uint64_t> counts_;
  std::vector<std::pair<std::string, uint64_t>> written_;
};

}  // namespace collect::convert
