// What a reader found wrong, in words, with the place. Skipping quietly is a bug: everything that a
// reader leaves out or does not believe ends in such a list, and a hostile file cannot make the
// list grow without bound. Each format has its own Finding; the bookkeeping is the same for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collect {

enum class Severity : uint8_t {
  kNote,     // unusual, nothing lost; does not change the grade
  kWarning,  // worth knowing; does not change the grade
  kError,    // the file contradicts itself: it is damaged
};

// Keeps the first kMaxListed findings and counts all of them. `Finding` has a member `severity`.
template <class Finding>
class FindingList {
 public:
  static constexpr size_t kMaxListed = 1000;

  void add(Finding finding) {
    count(finding.severity);
    if (list_.size() < kMaxListed) list_.push_back(std::move(finding));
  }
  // For findings that every record may cause: built only while the list has room.
  template <class MakeFinding>
  void add_lazily(Severity severity, MakeFinding make_finding) {
    if (list_.size() < kMaxListed) {
      add(make_finding());
    } else {
      count(severity);
    }
  }

  const std::vector<Finding>& list() const { return list_; }
  uint64_t errors() const { return counts_[static_cast<size_t>(Severity::kError)]; }
  uint64_t warnings() const { return counts_[static_cast<size_t>(Severity::kWarning)]; }
  uint64_t notes() const { return counts_[static_cast<size_t>(Severity::kNote)]; }
  uint64_t unlisted() const { return errors() + warnings() + notes() - list_.size(); }

 private:
  void count(Severity severity) { ++counts_[static_cast<size_t>(severity)]; }

  std::vector<Finding> list_;
  uint64_t counts_[3] = {};
};

}  // namespace collect
