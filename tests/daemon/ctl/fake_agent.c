// A library that can be preloaded and does nothing: the tests look at how it gets there.
int collect_fake_agent(void);
int collect_fake_agent(void) {
  return 0;
}
