// Every limit of the live page, in one place. WEB.md "Limits" has the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace collect::web {

// For one request.
inline constexpr size_t kMaxHeadBytes = 16u << 10;  // request line and fields, with the empty line
inline constexpr size_t kMaxFields = 64;
inline constexpr size_t kMaxTargetBytes = 8u << 10;  // names of functions are long
inline constexpr size_t kMaxBodyBytes = 16u << 10;
inline constexpr std::chrono::milliseconds kRequestDeadline{10'000};  // from its first byte
inline constexpr std::chrono::milliseconds kAnswerDeadline{
    150'000};  // of what has to be waited for

// For connections.
inline constexpr size_t kMaxConnections = 64;
inline constexpr size_t kMaxConnectionsPerPrincipal = 48;
inline constexpr size_t kReadBytes = 8u << 10;                          // taken at once
inline constexpr std::chrono::milliseconds kFirstByteDeadline{10'000};  // of a new connection
inline constexpr std::chrono::milliseconds kIdleDeadline{60'000};       // between two requests
inline constexpr std::chrono::milliseconds kWriteDeadline{30'000};      // without a byte taken
inline constexpr std::chrono::milliseconds kLastBytesDeadline{
    1'000};                                          // of a client's, after the end
inline constexpr size_t kMaxRefusedConnections = 8;  // of those who may not connect
inline constexpr std::chrono::milliseconds kRefusedDeadline{3'000};
inline constexpr std::chrono::milliseconds kAcceptPause{100};  // out of descriptors
inline constexpr std::chrono::seconds kRefusalLogPeriod{10};

// For live events.
inline constexpr size_t kMaxStreams = 16;
inline constexpr std::chrono::milliseconds kLiveInterval{500};
inline constexpr std::chrono::milliseconds kStreamSignOfLife{15'000};  // where nothing changes
inline constexpr size_t kMaxShownSessions = 100;
inline constexpr size_t kMaxShownAgents = 100;
inline constexpr size_t kMaxShownDevices = 50;

// For pages of sessions.
inline constexpr size_t kMaxPagesAtOnce = 2;  // that are made at the same time
inline constexpr size_t kMaxPages = 6;        // that wait, are made, or are being sent
inline constexpr std::chrono::milliseconds kPageDeadline{60'000};   // of making one
inline constexpr std::chrono::milliseconds kPageNamesTime{20'000};  // of that, finding names
inline constexpr uint64_t kMaxPageBytes = 64u << 20;
inline constexpr uint64_t kPageMemoryBytes = uint64_t{2} << 30;  // of the program that makes one
inline constexpr int kPageNiceness = 10;
inline constexpr size_t kMaxPageRequestBytes = 1u << 20;  // what that program is asked

// For an unpacked viewer's files, each of which is read as a whole.
inline constexpr uint64_t kMaxViewerFileBytes = 64u << 20;

}  // namespace collect::web
