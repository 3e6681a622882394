// What exceptions_host.c opens.
#include <stdexcept>

extern "C" {
__attribute__((noinline)) void f_throw(int n) {
  if (n == 0) throw std::runtime_error("bottom");
  f_throw(n - 1);
  asm volatile("" ::: "memory");
}
__attribute__((noinline, visibility("default"))) void f_guest(int n) {
  try {
    f_throw(n);
  } catch (const std::exception&) {
    asm volatile("" ::: "memory");
  }
}
}
