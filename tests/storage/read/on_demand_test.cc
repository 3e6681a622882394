// Bytes that are made when they are read: the right ones, for several threads at once, with far
// fewer blocks in memory than there are; in a child they are not another's.
#include "storage/read/on_demand.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/child/forked_child.h"

namespace collect::read {
namespace {

constexpr uint64_t kBlocks = 60;
constexpr uint64_t kBytes = kBlocks * kDemandBlockBytes - 12'345;

constexpr size_t kStep = 4096;

uint8_t byte_at(uint64_t offset) {
  return static_cast<uint8_t>(offset / kStep * 7 + offset / kDemandBlockBytes);
}

class OnDemandTest : public testing::Test {
 protected:
  OnDemandTest() {
    auto made = OnDemand::create(kBytes, [this](uint64_t offset, MutableBytes out) {
      ++fills_;
      for (size_t at = 0; at < out.size(); at += kStep) {
        std::fill_n(out.begin() + static_cast<ptrdiff_t>(at), std::min(kStep, out.size() - at),
                    byte_at(offset + at));
      }
    });
    if (made.ok()) bytes_ = std::move(*made);
  }
  void SetUp() override { ASSERT_TRUE(bytes_); }

  // How many of so many bytes at random places are not what they should be.
  uint64_t wrong_bytes(uint32_t seed, int count) {
    std::mt19937_64 random(seed);
    uint64_t wrong = 0;
    for (int i = 0; i < count; ++i) {
      const uint64_t offset = random() % kBytes;
      wrong += bytes_->bytes()[offset] != byte_at(offset) ? 1 : 0;
    }
    return wrong;
  }

  std::atomic<uint64_t> fills_{0};
  std::unique_ptr<OnDemand> bytes_;
};

TEST_F(OnDemandTest, NothingIsMadeBeforeItIsRead) {
  EXPECT_EQ(bytes_->bytes().size(), kBytes);
  EXPECT_EQ(fills_, 0u);
  EXPECT_EQ(bytes_->bytes()[kDemandBlockBytes + 5], byte_at(kDemandBlockBytes + 5));
  EXPECT_EQ(bytes_->bytes()[kDemandBlockBytes], byte_at(kDemandBlockBytes));
  EXPECT_EQ(fills_, 1u);
  bytes_->drop();
  EXPECT_EQ(bytes_->bytes()[kDemandBlockBytes], byte_at(kDemandBlockBytes));
  EXPECT_EQ(fills_, 2u);
}

TEST_F(OnDemandTest, AllOfItInOrder) {
  uint64_t wrong = 0;
  for (uint64_t offset = 0; offset < kBytes; offset += 509) {
    wrong += bytes_->bytes()[offset] != byte_at(offset) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(fills_, kBlocks);
}

TEST_F(OnDemandTest, SeveralThreadsAtRandomPlaces) {
  std::atomic<uint64_t> wrong{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] { wrong += wrong_bytes(seed, 300); });
  }
  std::thread dropping([&] {
    while (!is_over) bytes_->drop();
  });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  dropping.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(OnDemandTest, SeveralObjectsShareTheMemory) {
  std::vector<std::unique_ptr<OnDemand>> others;
  for (uint8_t number = 0; number < 80; ++number) {
    auto made = OnDemand::create(kDemandBlockBytes + 1, [number](uint64_t, MutableBytes out) {
      std::ranges::fill(out, number);
    });
    ASSERT_TRUE(made.ok());
    others.push_back(std::move(*made));
  }
  for (int round = 0; round < 3; ++round) {
    for (uint8_t number = 0; number < 80; ++number) {
      const Bytes bytes = others[number]->bytes();
      EXPECT_EQ(bytes.front(), number);
      EXPECT_EQ(bytes.back(), number);
    }
    EXPECT_EQ(wrong_bytes(99, 20), 0u);
    others.erase(others.begin() + round);
    others.insert(others.begin() + round, nullptr);
    auto made = OnDemand::create(kDemandBlockBytes + 1, [round](uint64_t, MutableBytes out) {
      std::ranges::fill(out, static_cast<uint8_t>(round));
    });
    ASSERT_TRUE(made.ok());
    others[static_cast<size_t>(round)] = std::move(*made);
  }
}

// The memory is its parent's, which fills it with something else.
TEST_F(OnDemandTest, ChildDiesRatherThanReadWrongBytes) {
  EXPECT_EQ(bytes_->bytes()[0], byte_at(0));
  const collect::child::Ending ending = collect::child::forked([this] {
    const volatile uint8_t* const first = bytes_->bytes().data();
    return *first == byte_at(0) ? 40 : 41;
  });
  EXPECT_FALSE(ending.exited_with(40) || ending.exited_with(41)) << ending.describe();
}

TEST_F(OnDemandTest, OtherFaultsEndTheProgram) {
  const collect::child::Ending ending = collect::child::forked([this] {
    (void)bytes_->bytes()[0];
    void* const hidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *static_cast<volatile int*>(hidden) == 0 ? 40 : 41;
  });
  EXPECT_FALSE(ending.exited_with(40) || ending.exited_with(41)) << ending.describe();
}

}  // namespace
}  // namespace collect::read
