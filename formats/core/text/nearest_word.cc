#include "formats/core/text/nearest_word.h"

#include <algorithm>

namespace collect {
namespace {

constexpr size_t kMaxSlips = 3;

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table, in turn: this one, the one before, the one before that.
  size_t rows[3][kMaxNearestBytes + 1];
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t* row = rows[i % 3];
    const size_t* before = rows[(i + 2) % 3];
    const size_t* older = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[j] = std::min(std::min(before[j], row[j - 1]) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::string_view nearest_word(std::string_view word, const std::string_view* candidates,
                              size_t count) {
  if (word.size() > kMaxNearestBytes) return {};
  std::string_view nearest;
  size_t least = std::min(kMaxSlips, word.size() / 3) + 1;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view candidate = candidates[i];
    if (candidate.size() > kMaxNearestBytes) continue;
    const size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= least) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace collect
