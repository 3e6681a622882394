#include "storage/select/detail_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace collect::select {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> registers_of(uint32_t flags, bool is_tracer_block) {
  atf::DetailRecord record;
  record.flags = static_cast<uint16_t>(flags);
  atf::FunctionDetail detail{};
  detail.form = is_tracer_block ? atf::PayloadForm::kTracerBlock : atf::PayloadForm::kDocumented;
  for (uint64_t r = 0; r < 8; ++r) detail.x_regs[r] = 10 + r;
  detail.lr = 20;
  detail.fp = 21;
  detail.sp = 22;
  std::vector<std::string> found;
  for_each_register(record, detail, [&](const Register& reg) {
    found.push_back(reg.name + ("=" + std::to_string(reg.value)));
  });
  return found;
}

TEST(Registers, AreThoseThatTheFlagsName) {
  const std::vector<std::string> all = {"x0=10", "x1=11", "x2=12", "x3=13", "x4=14", "x5=15",
                                        "x6=16", "x7=17", "lr=20", "fp=21", "sp=22"};
  EXPECT_EQ(registers_of(0, false), all) << "a record that names none has all of them";
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_THAT(registers_of(uint32_t{atf::kDetailX0Valid} << i, false), ElementsAre(all[i]));
  }
  EXPECT_THAT(registers_of(atf::kDetailLrValid, false), ElementsAre("lr=20"));
  EXPECT_THAT(registers_of(atf::kDetailFpValid, false), ElementsAre("fp=21"));
  EXPECT_THAT(registers_of(atf::kDetailSpValid, false), ElementsAre("sp=22"));
  EXPECT_EQ(registers_of(atf::kDetailSpValid, true), all) << "another form, other flags";
}

}  // namespace
}  // namespace collect::select
