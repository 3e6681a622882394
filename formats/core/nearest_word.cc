#include "formats/core/nearest_word.h"

#include <algorithm>
#include <cstddef>

namespace collect {
namespace {

constexpr size_t kMaxSlips = 3;

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: two before, one before, this one.
  std::vector<size_t> older(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    older.swap(before);
    before.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxNearestBytes) return "";
  const std::string* nearest = nullptr;
  size_t least = std::min(kMaxSlips, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= least) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? "" : *nearest;
}

}  // namespace collect
