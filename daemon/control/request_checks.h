// What a request may hold before the collector sees it: lengths, counts and durations within named
// limits. Every message says what to send instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collect/control/v1/control.pb.h"
#include "daemon/control/collector_api.h"
#include "formats/core/result.h"

namespace collect::control {

inline constexpr int kMaxRequestBytes = 1 << 20;
inline constexpr size_t kMaxNameBytes = 512;  // resource names, filters, addresses
inline constexpr int kMaxRules = 256;
inline constexpr int kMaxTriggers = 32;
inline constexpr size_t kMaxCounterNameBytes = 63;      // as the wire's
inline constexpr uint32_t kMaxRuleSpoolMb = 64 * 1024;  // as COLLECT_SPOOL_MB
inline constexpr int kMaxDetailFunctions = 1024;
inline constexpr size_t kMaxAgentTagBytes = 63;       // as COLLECT_TAG
inline constexpr uint32_t kMostRate = 1'000'000'000;  // as COLLECT_MAX_RATE
inline constexpr size_t kMaxFunctionPatternBytes = 1024;
inline constexpr size_t kMaxAnnotationBytes = 4096;          // what a manifest keeps of a text
inline constexpr int64_t kMaxDetailSeconds = 7 * 24 * 3600;  // duration and pre_roll
inline constexpr uint32_t kDefaultWatchIntervalMs = 1000;
inline constexpr uint32_t kMinWatchIntervalMs = 50;  // shorter intervals become this one
inline constexpr uint32_t kMaxWatchIntervalMs = 3600 * 1000;
inline constexpr uint32_t kMinCallsIntervalMs = 100;
inline constexpr uint32_t kMaxCallsIntervalMs = 60 * 1000;
inline constexpr uint32_t kDefaultMaxCalls = 100;
inline constexpr uint32_t kMostMaxCalls = 1000;

// `field` is the request's field for the message. Names are printable text of bounded length.
Status check_name(std::string_view field, const std::string& name);
// `duration` was checked.
uint64_t nanoseconds_of(const google::protobuf::Duration& duration);
Status check_selector(const v1::Selector& target);
Status check_attach(const v1::AttachAgentRequest& request);
Status check_pid(int32_t pid);
Status check_attach_process(const v1::AttachProcessRequest& request);
Status check_detach(const v1::DetachAgentRequest& request);
Status check_delete(const v1::DeleteSessionRequest& request);
Result<DetailCommand> detail_command_of(const v1::ArmDetailRequest& request);
Result<DetailCommand> detail_command_of(const v1::StartDetailRequest& request);
Result<DetailCommand> detail_command_of(const v1::StopDetailRequest& request);
Status check_triggers(const v1::SetTriggersRequest& request);
Status check_function_filter(const v1::SetFunctionFilterRequest& request);
Status check_start(const v1::StartSessionRequest& request);
Status check_rules(const v1::SetRulesRequest& request);
Status check_annotation(const v1::AnnotateRequest& request);
Status check_conversion(const v1::ConvertSessionRequest& request);
// Puts in the defaults, and limits in place of what is beyond them.
Result<v1::WatchCallsRequest> checked_calls(const v1::WatchCallsRequest& request);
Result<uint32_t> watch_interval_ms(const v1::WatchSessionRequest& request);

}  // namespace collect::control
