// What collectctl and an agent that it loads into a running process say to each other: one block in
// that process's memory. x86-64 Linux; DYNAMIC.md "Attaching".
//
// collectctl fills it in and starts a thread, which loads the library and calls its kAttachEntry
// with the block. From then on the agent writes, but for `state` while it is kAttachPrepared: then
// collectctl stops every thread of the process, writes the jumps, and sets the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "formats/patch/plan_layout.h"

namespace collect::patch {

inline constexpr char kAttachEntry[] = "collect_agent_attach";
inline constexpr size_t kAttachPathBytes = 4096;
inline constexpr size_t kAttachMessageBytes = 512;
inline constexpr size_t kAttachVariablesBytes = 24'576;

// Beyond this no one writes jumps any more, and the agent goes back.
inline constexpr uint32_t kAttachCommitSeconds = 30;

enum AttachState : uint32_t {
  kAttachLoading = 0,
  kAttachPrepared = 1,    // stubs are in place, `jumps` are not written
  kAttachCommitting = 2,  // collectctl may have written some
  kAttachCommitted = 3,   // all are written, or there are none
  kAttachDone = 4,        // `message`: what the agent says of itself
  kAttachFailed = 5,      // `message`: why; nothing was changed
};

enum AttachTask : uint32_t {
  kAttachStart = 0,  // with the settings in `variables`; one that runs is stopped first
  kAttachStop = 1,   // the agent ships the rest, switches off, and ends its thread
};

// A jump over the beginning of a window. All are by ascending address.
struct AttachJump {                   // 64 bytes
  uint64_t address;                   //  0
  uint8_t jump[kJumpBytes];           //  8
  uint8_t bytes;                      // 13  of the window
  uint8_t original[kMaxWindowBytes];  // 14  what is there
  uint8_t reserved[3];                // 61  zero
};
static_assert(sizeof(AttachJump) == 64 && offsetof(AttachJump, reserved) == 61);
static_assert(std::has_unique_object_representations_v<AttachJump>);

struct AttachRequest {
  uint64_t pthread_create;                //   0  functions of the process's C library
  uint64_t pthread_self;                  //   8
  uint64_t pthread_detach;                //  16
  uint64_t dlopen;                        //  24
  uint64_t dlsym;                         //  32
  uint64_t dlerror;                       //  40
  uint64_t thread;                        //  48  pthread_t of the thread that loads the library
  uint64_t returned;                      //  56  1: pthread_create did, with `result`
  uint64_t result;                        //  64
  uint32_t state;                         //  72  AttachState
  uint32_t task;                          //  76  AttachTask
  uint64_t jumps;                         //  80  address of AttachJump[jump_count]
  uint64_t jump_count;                    //  88
  uint64_t memory;                        //  96  the mapping that holds all this: the agent
  uint64_t memory_bytes;                  // 104  gives it back when the next one comes
  char entry[32];                         // 112  kAttachEntry
  char message[kAttachMessageBytes];      // 144  a sentence, terminated
  char library[kAttachPathBytes];         // 656  terminated
  char variables[kAttachVariablesBytes];  // 4752  NAME=value, each terminated; an empty one ends
                                          // them
};
static_assert(offsetof(AttachRequest, thread) == 48 && offsetof(AttachRequest, state) == 72);
static_assert(offsetof(AttachRequest, entry) == 112 && offsetof(AttachRequest, message) == 144);
static_assert(offsetof(AttachRequest, library) == 656 &&
              offsetof(AttachRequest, variables) == 4752);
static_assert(std::has_unique_object_representations_v<AttachRequest>);

}  // namespace collect::patch
