#include "daemon/collector/agents/session_message.h"

namespace collect {

namespace api = control::v1;

api::SymbolsState to_message(storage::SymbolsState state) {
  switch (state) {
    case storage::SymbolsState::kNone:
      break;
    case storage::SymbolsState::kPending:
      return api::SYMBOLS_STATE_PENDING;
    case storage::SymbolsState::kDone:
      return api::SYMBOLS_STATE_DONE;
    case storage::SymbolsState::kFailed:
      return api::SYMBOLS_STATE_FAILED;
  }
  return api::SYMBOLS_STATE_UNSPECIFIED;
}

api::ProcessEnd to_message(const storage::ProcessEnd& end) {
  using How = storage::ProcessEnd::How;
  api::ProcessEnd message;
  message.set_how(end.how == How::kExited     ? api::ProcessEnd::HOW_EXITED
                  : end.how == How::kSignaled ? api::ProcessEnd::HOW_SIGNALED
                  : end.how == How::kExeced   ? api::ProcessEnd::HOW_EXECED
                                              : api::ProcessEnd::HOW_UNKNOWN);
  if (end.how == How::kExited) message.set_exit_code(end.exit_code);
  message.set_signal(end.signal);
  message.set_core_dumped(end.core_dumped);
  return message;
}

google::protobuf::Timestamp timestamp_of(uint64_t unix_ns) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  google::protobuf::Timestamp time;
  time.set_seconds(static_cast<int64_t>(unix_ns / kSecondNs));
  time.set_nanos(static_cast<int32_t>(unix_ns % kSecondNs));
  return time;
}

}  // namespace collect
