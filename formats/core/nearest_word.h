// What somebody may have meant who mistyped a word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collect {

inline constexpr size_t kMaxNearestBytes = 256;  // longer words are near nothing

// Characters to insert, remove or replace (or two neighbours to swap) to make `b` of `a`.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, the first of equals; empty when all are further away
// than a slip of the keyboard: one in three characters, three at most.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace collect
