// What a JSON text would cost as a tree, looked at before a parser builds it: two bytes of text can
// become a hundred of memory, and a parser keeps a level of its stack per bracket.
#pragma once

#include <cstddef>
#include <string_view>

#include "formats/core/result.h"

namespace collect {

struct JsonLimits {
  size_t depth = 0;   // of brackets within each other
  size_t values = 0;  // members, elements, lists and objects together
};

// kLimit when the text goes beyond; whether it is JSON at all, the parser says.
Status check_json_shape(std::string_view text, const JsonLimits& limits);

}  // namespace collect
