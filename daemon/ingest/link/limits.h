// Every limit and pace of ingest, in one place. What a user may change is in IngestOptions and has
// its default here; DAEMON.md has the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "proto/wire/layout.h"
#include "proto/wire/proof.h"

namespace collect::ingest {

using std::chrono::milliseconds;

// What an agent that answers does at once; a connection that says nothing is closed (WIRE.md). Up
// to the Proof, the TLS handshake included.
inline constexpr milliseconds kHelloDeadline{5'000};
// Connections that have not said hello: beyond this the oldest is evicted. Loopback and Unix
// sockets are all one address, of all agents behind adb or on this machine: they have no
// share.
inline constexpr uint32_t kMaxPendingConnections = 1'024;
inline constexpr uint32_t kMaxPendingPerAddress = 128;
// Refused connections that may take their time to read why; the next is closed at once.
inline constexpr uint32_t kMaxLingering = 256;
// A process has two connections; one alone for this long is let go.
inline constexpr milliseconds kPairDeadline{10'000};
// After Refuse: how long, and how many bytes, the peer may take to read it. Closing at once would
// reset the connection under the reason.
inline constexpr milliseconds kLingerDeadline{1'000};
inline constexpr size_t kLingerBytes = 16u << 20;

inline constexpr milliseconds kDefaultHeartbeat{2'000};
inline constexpr milliseconds kMinHeartbeat{50};
inline constexpr milliseconds kMaxHeartbeat{60'000};
inline constexpr int kDeadAfterHeartbeats = 3;
// A frame that was begun on a data channel and does not move for this long ends the connection.
inline constexpr milliseconds kFrameStall{30'000};
inline constexpr milliseconds kSweepInterval{500};
// A session whose agent is away is kept open for this long, then sealed as recovered.
inline constexpr milliseconds kDefaultResume{60'000};

inline constexpr milliseconds kCommandTimeout{10'000};
// After a stop command: how long an agent may ship nothing before its session is sealed without it.
inline constexpr milliseconds kStopIdleDeadline{10'000};
// At the end of the daemon: how long sealing may take in all; and how long an agent that knows of
// the end may take to close its data channel, which is read to its end. So long may an agent also
// take for its Bye when its data has ended first: through adb the two come by ways of their own.
inline constexpr milliseconds kShutdownBound{10'000};
inline constexpr milliseconds kFarewellDeadline{1'000};

// One read buffer: a whole frame of any size fits, and there is room to read ahead.
inline constexpr size_t kReadBufferBytes = (1u << 20) + 4096;
static_assert(kReadBufferBytes >= wire::kMaxFrameBytes);
// Two more for each of them, once it has met an encoded page: a page of any size is decoded there.
inline constexpr size_t kUnpackBytes = wire::kMaxPageBytes;
// What is decoded is written when it is so much: later, the processor's cache would have lost the
// beginning.
inline constexpr size_t kDecodedRunBytes = 512u << 10;
// What one system call of a TLS connection may bring; its buffer is there only while it is used.
inline constexpr size_t kTlsReadAheadBytes = 64u << 10;
// A turn of a data lane ends after this many bytes that were read, or stored as records: an encoded
// page may be a hundred times longer than what came.
inline constexpr size_t kReadTurnBytes = 4u << 20;
inline constexpr size_t kStoreTurnBytes = 16u << 20;
// Or after so many frames that are no pages.
inline constexpr uint32_t kFramesPerTurn = 256;
// Control frames are read into a small buffer that grows as far as one frame needs.
inline constexpr size_t kControlReadBytes = 4096;
inline constexpr size_t kMaxSendQueueBytes = 1u << 20;  // what a peer has not read yet

inline constexpr uint32_t kDefaultMaxConnections = 4'096;
inline constexpr uint32_t kDefaultSessionsPerAgent = 1'000;  // recordings of one process
inline constexpr uint32_t kDefaultConnectionsPerAddress = 1'024;
inline constexpr uint32_t kDefaultThreadsPerAgent = 16'384;  // streams open at once
// dial9 feeds: connected at once, and what each may hold in memory beside read buffers. The
// recorder's own frames have at most 1 MiB.
inline constexpr uint32_t kMaxFeeds = 64;
inline constexpr uint64_t kMaxFeedFrameBytes = 4u << 20;
inline constexpr uint64_t kMaxFeedStateBytes = 16u << 20;  // schemas and annotations
// What all principals together may use; one alone has three quarters of it (principal/budget.h).
inline constexpr uint64_t kMaxUnsealedSessions = 16'384;
inline constexpr uint64_t kMaxAccountedMemory = 2ull << 30;
inline constexpr uint64_t kMaxUnsealedFiles = 1u << 20;  // inodes of sessions that are not sealed
// What is charged, roughly: measured with many of each.
inline constexpr uint64_t kSessionMemory = 64u << 10;
inline constexpr uint64_t kStreamMemory = 5u << 10;
// Everybody may have so much while there is any.
inline constexpr uint64_t kLeastConnections = 8;
inline constexpr uint64_t kLeastSessions = 4;
inline constexpr uint64_t kLeastMemory = 4u << 20;
inline constexpr uint64_t kLeastFiles = 256;
// For one principal: beyond it reading waits, and no one is refused.
inline constexpr double kStreamOpensPerSecond = 4'096;
inline constexpr double kStreamOpensAtOnce = 16'384;
// For one principal, beside a quarter of what its records take. Each session has its own pace too
// (storage/session/live_manifest.h).
inline constexpr double kManifestBytesPerSecond = 64u << 20;
inline constexpr double kManifestBytesAtOnce = 256u << 20;
// Descriptors that neither connections of agents nor their files get: for the control plane, seals,
// logs. A quarter where there are few.
inline constexpr uint64_t kReservedDescriptors = 1'024;
// A session keeps at least so many files open, however scarce they are: those of one thread.
inline constexpr uint64_t kLeastOpenFiles = 3;
// While more comes a commit may be put off for so long, and for so many bytes of records.
inline constexpr milliseconds kMaxCommitDelay{200};
inline constexpr size_t kMaxUncommittedBytes = 4u << 20;
// What was deferred because this machine is out of something is tried again after this time.
inline constexpr milliseconds kExhaustedPause{50};
// A manifest that is paced is looked at again after this time at the latest.
inline constexpr milliseconds kMaxManifestPause{1'000};
inline constexpr uint32_t kMaxIoThreads = 4;
inline constexpr uint32_t kMaxDataThreads = 4;
// When all of them are stuck on a disk for so long, another one is started, up to so many.
inline constexpr milliseconds kStuckAfter{200};
inline constexpr uint32_t kMaxStuckDataThreads = 16;
inline constexpr uint32_t kMaxSealThreads = 4;
inline constexpr uint32_t kMaxAttachedAddresses = 256;
// Sessions on disk that are looked at when the collector starts: the newest.
inline constexpr size_t kListedSessions = 1'000;
inline constexpr size_t kMaxPendingCommands = 256;    // of one agent
inline constexpr size_t kMaxRecentProcesses = 1'024;  // detached, or sealed: by process id
// Strings of agents; no shorter than what WIRE.md allows.
inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxPathBytes = 512;
inline constexpr size_t kMaxBuildIdBytes = 64;
// Processes of one io thread that are away and have no session open: beyond this they are
// forgotten.
inline constexpr size_t kMaxIdlePeers = 1'024;
using wire::kMaxTokenBytes;

// Clock sync: probes of one burst, pause between bursts, bursts that the fit looks at.
inline constexpr uint32_t kProbesPerBurst = 16;
inline constexpr milliseconds kBurstInterval{5'000};
inline constexpr milliseconds kProbeDeadline{1'000};
inline constexpr size_t kFittedBursts = 32;

// Dialling: an address that does not answer is tried again after a growing pause.
inline constexpr milliseconds kFirstRedial{100};
inline constexpr milliseconds kMaxRedial{2'000};
inline constexpr milliseconds kDialDeadline{5'000};

// A seal that a full disk deferred is tried again after this time; of so many sessions at most, the
// next start finds the others.
inline constexpr milliseconds kSealAgain{1'000};
inline constexpr size_t kMaxDeferredSeals = 1'000;

// A session's manifest is made true this long after its last change at the latest, or twice.
inline constexpr milliseconds kSettleInterval{1'000};
// Changes of counters reach the observer at most this often; changes of state at once.
inline constexpr milliseconds kProgressInterval{100};
// Log lines about refused connections: at most this many in ten seconds.
inline constexpr uint32_t kRefusalLinesPerPeriod = 20;
inline constexpr milliseconds kRefusalLogPeriod{10'000};

}  // namespace collect::ingest
