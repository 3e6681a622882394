/* Linked statically: LD_PRELOAD does nothing for it. */
int main(void) {
  return 0;
}
