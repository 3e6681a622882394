/* What a module that was built with -fxray-instrument and the agent give each other: the interface
 * between collect_xray.o, which is linked into each such module, and the agent's library. C99, and
 * plain data only: the two may come from different releases. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COLLECT_XRAY_ABI 1

/* The module's own, constant but for `handlers` and `agent`. */
struct collect_xray_module {
  uint32_t abi;          /* COLLECT_XRAY_ABI */
  uint32_t struct_bytes; /* sizeof(struct collect_xray_module) */
  const void* map_begin; /* xray_instr_map, entries of 32 bytes */
  const void* map_end;
  /* Sleds call or jump here. A function's number is its distance from `anchor`. */
  const void* enter;
  const void* exit;
  const void* tail;
  const void* anchor;
  /* The agent's, before it patches the first sled: what the three above call, in this order. */
  void (*handlers[3])(uint64_t function, const uint64_t* registers, uint64_t frame_pointer);
  void* agent; /* the agent's place for this module; null: not registered */
};

/* Defined by the agent. Any thread; from the module's constructor and destructor. */
void collect_xray_register(struct collect_xray_module* module);
void collect_xray_unregister(struct collect_xray_module* module);

#ifdef __cplusplus
}
#endif
