/* collect/agent.h: records calls and returns of this process and streams them to a collector.
 *
 * C99; includes only <stdint.h> and <stddef.h>. A program built with -finstrument-functions needs
 * none of this: linking or preloading the library and COLLECT_* variables are enough (AGENT.md).
 * Every function may be called from any thread, at any time, and never fails loudly: an agent that
 * can't run stays off, and collect_agent_status() says why.
 */
#ifndef COLLECT_AGENT_H_
#define COLLECT_AGENT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/* Seen from outside of the library. */
#define COLLECT_EXPORT __attribute__((visibility("default")))
#else
#define COLLECT_EXPORT
#endif

#define COLLECT_AGENT_API_VERSION 1 /* of this header */

/* What happens to a new event when the ring is full. */
typedef enum collect_full_policy {
  COLLECT_FULL_DROP = 0,      /* the new event is lost, and counted */
  COLLECT_FULL_OVERWRITE = 1, /* the oldest events are lost, and counted */
  COLLECT_FULL_WAIT = 2       /* the calling thread waits, so that nothing is lost */
} collect_full_policy;

/* Whether registers and stack bytes are recorded with the events. */
typedef enum collect_detail_mode {
  COLLECT_DETAIL_OFF = 0,   /* they are not */
  COLLECT_DETAIL_ARMED = 1, /* into the ring, and shipped when someone asks for what was before */
  COLLECT_DETAIL_ON = 2     /* they are */
} collect_detail_mode;

/* Who ships what is recorded. */
typedef enum collect_drain {
  COLLECT_DRAIN_THREAD = 0, /* a thread of this process ships what is recorded */
  COLLECT_DRAIN_PROCESS = 1 /* a process of its own does: what was recorded outlives a crash */
} collect_drain;

/* Zero means the default for every field but struct_bytes. Strings are copied. */
typedef struct collect_agent_options {
  uint32_t struct_bytes;  /* sizeof(collect_agent_options): lets later versions add fields */
  uint32_t buffer_mb;     /* memory for rings, default 64 */
  const char* connect;    /* "[tls://]host:port", "tcp:port", "unix:/path" …; several: "a,b" */
  const char* listen;     /* "tcp:port", "unix:/path" or "abstract:name" */
  const char* token_file; /* the token that the collector proves, and the agent */
  const char* tag;        /* an opaque label, shown by the collector */
  uint32_t full_policy;   /* collect_full_policy */
  uint32_t atf_version;   /* 1 or 2, default 2 */
  uint32_t detail;        /* collect_detail_mode */
  uint32_t start_idle;    /* 1: record nothing until the collector asks */
  /* Added by later headers, so struct_bytes may end before: */
  uint32_t drain;    /* collect_drain */
  uint32_t spool_mb; /* its largest size, default 256 */
  const char* spool; /* folder for a file that keeps what is recorded while no collector is there */
  uint32_t max_depth;      /* record a thread's calls down to this depth alone; at most 1000000 */
  uint64_t longer_than_ns; /* leave out calls that return sooner; at most an hour */
  uint64_t max_time_ns;    /* a recording ends after it; the program continues */
  uint64_t max_bytes;      /* a recording ends when it has so many bytes; the program continues */
  uint32_t this_process_only; /* 1: forked children are not recorded */
  uint32_t max_rate;          /* switch off functions with more calls in a second; at most 1e9 */
  /* Patterns, separated by ";": these functions alone, and not those. collect_agent_start then
   * waits for the collector to look them up; nothing is recorded before. */
  const char* only;
  const char* except; /* as only */
} collect_agent_options;

/* What the agent does, and what it has recorded. */
typedef struct collect_agent_stats {
  uint32_t struct_bytes;    /* in: sizeof(collect_agent_stats) */
  uint32_t recording;       /* 1 while events are recorded */
  uint32_t connected;       /* 1 while a collector is there */
  uint32_t threads;         /* that record */
  uint64_t recorded;        /* events */
  uint64_t lost;            /* events */
  uint64_t detail_recorded; /* detail records */
  uint64_t detail_lost;     /* detail records */
  uint64_t buffer_used;     /* bytes of the ring */
  uint64_t buffer_bytes;    /* its size */
} collect_agent_stats;

#define COLLECT_AGENT_SETTINGS (-1)   /* an option is not valid */
#define COLLECT_AGENT_NO_MEMORY (-2)  /* for its rings */
#define COLLECT_AGENT_NO_THREAD (-3)  /* that ships, or its address is not valid */
#define COLLECT_AGENT_PRIVILEGED (-4) /* set-uid, set-gid or file capabilities: it stays off */

/* Starts the agent. 0: it runs; otherwise one of the above, and collect_agent_status() says why.
 * A second call while it runs changes nothing and returns 0. */
COLLECT_EXPORT int collect_agent_start(const collect_agent_options* options);

/* Ships what is recorded, says goodbye and ends the drain thread; waits at most timeout_ms. */
COLLECT_EXPORT void collect_agent_stop(uint32_t timeout_ms);

/* A call: `function` is the address of the function, `call_site` where it returns to (may be
 * null). Costs a branch while nothing is recorded. Async-signal-safe. */
COLLECT_EXPORT void collect_enter(const void* function, const void* call_site);

/* The end of that call: `function` returns. As collect_enter otherwise. */
COLLECT_EXPORT void collect_exit(const void* function, const void* call_site);

/* The frame of `function` is left by an exception: the end of its call, in place of
 * collect_exit. */
COLLECT_EXPORT void collect_exception(const void* function, const void* call_site);

/* Sets the program's counter `name` (1 to 63 bytes, copied) to `value`, for triggers of the control
 * plane: "detail when queue_depth passes 1000". At most 64 names; further ones are ignored. The
 * collector gets the newest and the highest value some 20 ms later, or when it connects. Values are
 * not stored. Async-signal-safe. */
COLLECT_EXPORT void collect_counter(const char* name, int64_t value);

/* Fills `stats`; leaves it as it is if its struct_bytes is less than the library's. */
COLLECT_EXPORT void collect_agent_get_stats(collect_agent_stats* stats);

/* A static English sentence: what the agent does, or why it does not run. Never null. */
COLLECT_EXPORT const char* collect_agent_status(void);

#ifdef __cplusplus
}
#endif

#endif /* COLLECT_AGENT_H_ */
