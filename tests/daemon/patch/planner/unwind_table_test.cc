#include "daemon/patch/planner/unwind_table.h"

#include <gtest/gtest.h>

#include "tests/daemon/patch/planner/own_functions.h"

// The C++ runtime's own reading of the same tables.
extern "C" {
struct dwarf_eh_bases {
  void* tbase;
  void* dbase;
  void* func;
};
const void* _Unwind_Find_FDE(void* pc, dwarf_eh_bases* bases);
}

OWN_FUNCTION(unwind_probe,
             "pushq %rbx\n.cfi_adjust_cfa_offset 8\n"
             "subq $16, %rsp\n.cfi_adjust_cfa_offset 16\n"
             ".cfi_remember_state\n"
             "addq $16, %rsp\n.cfi_adjust_cfa_offset -16\n"
             "popq %rbx\n.cfi_adjust_cfa_offset -8\n"
             "ret\n"
             ".cfi_restore_state\n"
             "ud2");

namespace collect::patch {
namespace {

class UnwindTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = file_bytes("/proc/self/exe");
    auto image = ElfImage::parse(file_);
    ASSERT_TRUE(image.ok()) << image.error().message;
    image_.push_back(std::move(*image));
    auto table = UnwindTable::read(image_[0]);
    ASSERT_TRUE(table.ok()) << table.error().message;
    table_ = std::move(*table);
  }

  std::vector<uint8_t> file_;
  std::vector<ElfImage> image_;
  UnwindTable table_;
};

TEST_F(UnwindTableTest, AgreesWithTheRuntimesReader) {
  ASSERT_GT(table_.frames.size(), 100u);
  const uint64_t bias = own_load_bias();
  for (const Frame& frame : table_.frames) {
    for (const uint32_t address : {frame.begin, frame.end - 1}) {
      dwarf_eh_bases bases{};
      ASSERT_NE(_Unwind_Find_FDE(reinterpret_cast<void*>(bias + address), &bases), nullptr);
      EXPECT_EQ(reinterpret_cast<uint64_t>(bases.func), bias + frame.begin);
    }
  }
}

TEST_F(UnwindTableTest, KnowsWhereTheStackIsAsAtTheCall) {
  const uint32_t begin = own_address(unwind_probe);
  const Frame* frame = table_.find(begin);
  ASSERT_NE(frame, nullptr);
  ASSERT_EQ(frame->begin, begin);
  EXPECT_EQ(frame->end, begin + 13);
  EXPECT_TRUE(table_.at_return(*frame, begin));
  EXPECT_FALSE(table_.at_return(*frame, begin + 1));   // behind the push
  EXPECT_FALSE(table_.at_return(*frame, begin + 5));   // behind the sub
  EXPECT_FALSE(table_.at_return(*frame, begin + 9));   // behind the add
  EXPECT_TRUE(table_.at_return(*frame, begin + 10));   // behind the pop: the ret
  EXPECT_FALSE(table_.at_return(*frame, begin + 11));  // the remembered state
}

TEST_F(UnwindTableTest, AnyDamageIsAnErrorOrAnotherTable) {
  const uint64_t begin = image_[0].frame_header();
  const size_t bytes = std::min<size_t>(image_[0].at(begin).size(), 600);
  const auto at = static_cast<size_t>(image_[0].at(begin).data() - file_.data());
  for (size_t i = 0; i < bytes; ++i) {
    file_[at + i] ^= 0xFF;
    const auto table = UnwindTable::read(image_[0]);
    if (table.ok()) {
      for (size_t k = 1; k < table->frames.size(); ++k) {
        ASSERT_LE(table->frames[k - 1].end, table->frames[k].begin);
      }
    }
    file_[at + i] ^= 0xFF;
  }
}

}  // namespace
}  // namespace collect::patch
