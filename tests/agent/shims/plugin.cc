// A library that says when it is unloaded.
namespace {

void (*at_unload)() = nullptr;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void set_at_unload(void (*callee)()) {
  at_unload = callee;
}

__attribute__((destructor)) void unload() {
  if (at_unload != nullptr) at_unload();
}

}  // extern "C"
