/* A traced plugin. Built twice, as plugin_first and plugin_second, with different functions at the
 * same offsets: when one is loaded where the other was, only the module tells them apart. */
#ifndef PLUGIN_NAME
#error "PLUGIN_NAME is first or second"
#endif
#define JOIN_NAMES(a, b) a##_##b
#define JOIN(a, b) JOIN_NAMES(a, b)

int JOIN(PLUGIN_NAME, leaf)(int value);
int JOIN(PLUGIN_NAME, work)(int rounds);

int JOIN(PLUGIN_NAME, leaf)(int value) {
  return value * 3 + 1;
}

int JOIN(PLUGIN_NAME, work)(int rounds) {
  int value = 0;
  for (int i = 0; i < rounds; ++i) value = JOIN(PLUGIN_NAME, leaf)(value) & 0xFFFF;
  return value;
}
