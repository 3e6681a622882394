// A library that has agent/own_object.cc in it.
#include "agent/own_object.h"

extern "C" __attribute__((visibility("default"))) void ask_own_object(
    collect::agent::OwnObject* out) {
  *out = collect::agent::find_own_object();
}
