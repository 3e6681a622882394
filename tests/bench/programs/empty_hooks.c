/* Hooks that do nothing, in a shared library as the agent is. */
void __cyg_profile_func_enter(void* function, void* call_site);
void __cyg_profile_func_exit(void* function, void* call_site);

void __cyg_profile_func_enter(void* function, void* call_site) {
  (void)function;
  (void)call_site;
}

void __cyg_profile_func_exit(void* function, void* call_site) {
  (void)function;
  (void)call_site;
}
