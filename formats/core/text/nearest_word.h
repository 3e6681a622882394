// The known word nearest to a mistyped one. Nothing here allocates: the agent uses it too.
#pragma once

#include <cstddef>
#include <string_view>

namespace collect {

inline constexpr size_t kMaxNearestBytes = 256;  // longer words are near nothing

// Characters to insert, remove or replace (or two neighbours to swap) to make `b` of `a`, neither
// of them longer than kMaxNearestBytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, the first of equals; empty when all are further away
// than a slip of the keyboard: one in three characters, three at most.
std::string_view nearest_word(std::string_view word, const std::string_view* candidates,
                              size_t count);

}  // namespace collect
