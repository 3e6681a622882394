#include "formats/atf/check.h"

#include "formats/atf/thread_check.h"

namespace collect::atf {

std::string_view to_text(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kRecovered:
      return "recovered";
    case Grade::kDamaged:
      return "damaged";
    case Grade::kPartial:
      return "partial";
    case Grade::kRejected:
      return "rejected";
  }
  return "unknown";
}

namespace {

ThreadReport checked(ThreadCheck&& check) {
  while (const auto range = check.next()) check.add(check.look(*range));
  return check.finish();
}

}  // namespace

ThreadReport check_thread(uint32_t n, Bytes index, std::optional<Bytes> detail) {
  return checked(ThreadCheck(n, index, detail));
}

ThreadReport check_detail_alone(uint32_t n, Bytes detail) {
  return checked(ThreadCheck(n, std::nullopt, detail));
}

Grade grade_of(std::span<const ThreadReport> threads) {
  size_t readable = 0;
  bool damaged = false;
  bool recovered = false;
  for (const ThreadReport& thread : threads) {
    if (thread.rejected) continue;
    ++readable;
    damaged = damaged || thread.findings.errors() != 0;
    recovered = recovered || thread.state != FileState::kFinalized ||
                (thread.detail.present && !thread.detail.rejected &&
                 thread.detail.state != FileState::kFinalized);
  }
  if (readable == 0) return Grade::kRejected;
  if (readable < threads.size()) return Grade::kPartial;
  if (damaged) return Grade::kDamaged;
  return recovered ? Grade::kRecovered : Grade::kOk;
}

}  // namespace collect::atf
