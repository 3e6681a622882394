#include "formats/core/collect_variables.h"

#include <string.h>

namespace collect {
namespace {

size_t name_bytes(const char* entry) {
  return strcspn(entry, "=");
}

// Letters to insert, remove or replace (Levenshtein), row by row. Both within kMaxVariableName.
size_t edit_distance(const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
  size_t row[kMaxVariableName + 1];
  for (size_t k = 0; k <= b_bytes; ++k) row[k] = k;
  for (size_t i = 1; i <= a_bytes; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t k = 1; k <= b_bytes; ++k) {
      const size_t replaced = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = row[k];
      const size_t added = 1 + (row[k] < row[k - 1] ? row[k] : row[k - 1]);
      row[k] = replaced < added ? replaced : added;
    }
  }
  return row[b_bytes];
}

}  // namespace

bool is_unknown_variable(const char* entry) {
  if (strncmp(entry, kVariablePrefix, sizeof kVariablePrefix - 1) != 0) return false;
  const size_t bytes = name_bytes(entry);
  for (const char* known : kCollectVariables) {
    if (strlen(known) == bytes && strncmp(known, entry, bytes) == 0) return false;
  }
  return true;
}

const char* nearest_variable(const char* entry) {
  constexpr size_t kPrefix = sizeof kVariablePrefix - 1;
  const size_t bytes = name_bytes(entry);
  if (bytes > kMaxVariableName || bytes <= kPrefix) return nullptr;
  const char* nearest = nullptr;
  size_t least = (bytes - kPrefix) / 3 + 1;
  for (const char* known : kCollectVariables) {
    const size_t known_bytes = strlen(known);
    const size_t distance =
        edit_distance(entry + kPrefix, bytes - kPrefix, known + kPrefix, known_bytes - kPrefix);
    if (distance >= least) continue;
    least = distance;
    nearest = known;
  }
  return nearest;
}

}  // namespace collect
