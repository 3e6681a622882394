// A patch plan as it is in memory, checked. No allocation: the agent reads plans with it, too.
#pragma once

#include <cstdint>
#include <cstring>

#include "formats/core/bytes.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

// Points into the bytes that it was made from.
class PlanView {
 public:
  // Null, or what is wrong. Everything is checked that can be without the module itself: sizes,
  // order, that windows do not overlap, that sleds hold what they should, that fix-ups and stubs
  // are in the region. The checksum is the caller's to compare: checksummed().
  const char* parse(Bytes bytes);

  const PlanHeader& header() const { return header_; }
  Bytes checksummed() const { return bytes_.subspan(kChecksummedFrom); }
  Bytes region() const { return bytes_.subspan(sizeof(PlanHeader), header_.region_bytes); }
  PlanSite site(uint32_t index) const { return at<PlanSite>(sites_, index); }
  PlanSled sled(uint32_t index) const { return at<PlanSled>(sleds_, index); }
  uint32_t relative(uint32_t index) const { return at<uint32_t>(relatives_, index); }
  uint32_t absolute(uint32_t index) const { return at<uint32_t>(absolutes_, index); }
  PlanFunction function(uint32_t index) const { return at<PlanFunction>(functions_, index); }

 private:
  static constexpr size_t kChecksummedFrom = offsetof(PlanHeader, build_id_bytes);

  template <class T>
  T at(uint64_t table, uint32_t index) const {
    T value;
    memcpy(&value, bytes_.data() + table + uint64_t{index} * sizeof(T), sizeof(T));
    return value;
  }
  bool is_arm64() const { return header_.processor == static_cast<uint32_t>(Processor::kArm64); }
  const char* check_sites() const;
  const char* check_sleds() const;
  const char* check_fix_ups() const;
  const char* check_functions() const;
  bool is_sled(const PlanSled& sled) const;
  bool is_arm64_sled(const PlanSled& sled) const;

  Bytes bytes_;
  PlanHeader header_{};
  uint64_t sites_ = 0;  // where the tables begin
  uint64_t sleds_ = 0;
  uint64_t relatives_ = 0;
  uint64_t absolutes_ = 0;
  uint64_t functions_ = 0;
};

}  // namespace collect::patch
