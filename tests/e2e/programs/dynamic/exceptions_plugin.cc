// A library of exceptions.cc, opened with RTLD_LOCAL: an exception comes through it, and one is
// caught and thrown on.
#include <stdexcept>

#include "account.h"

#define NOINLINE __attribute__((noinline))

extern "C" {
using Callback = void (*)(int);
static Callback callback;
static Account& (*whose_account)();

UNTRACED __attribute__((visibility("default"))) void set_callback(Callback back,
                                                                  Account& (*whose)()) {
  callback = back;
  whose_account = whose;
}
}

UNTRACED Account& account() {
  return whose_account();
}

extern "C" {
NOINLINE void f_plugin_inner(int n) {
  BEGINS;
  callback(n);
  asm volatile("" ::: "memory");
  RETURNS;
}
NOINLINE __attribute__((visibility("default"))) void f_plugin(int n) {
  BEGINS;
  try {
    f_plugin_inner(n);
  } catch (const std::runtime_error&) {
    UNWOUND;
    throw;
  }
  RETURNS;
}
}
