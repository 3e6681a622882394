/* A library whose constructors run before the agent's: nothing leads from one to the other. */
__attribute__((noinline)) void early_work(void) {
  __asm__ volatile("");
}

__attribute__((noinline)) void library_work(void) {
  __asm__ volatile("");
}

__attribute__((constructor)) static void before_all(void) {
  for (int i = 0; i < 100; ++i) early_work();
}
