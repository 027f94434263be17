// Users' memory is registered once, as long as it is the same, and never mistaken for another.
#include "src/transport/registration_cache.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace catenary {
namespace {

// Registers whatever it is asked to, and counts.
class CountingPort final : public PutPort {
 public:
  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return register_source(memory);
  }
  std::unique_ptr<PutMemory> register_source(ByteView memory) override {
    ++asked;
    if (refuses) throw_error(ErrorCode::kSystem, "no memory may be locked");
    registered.push_back(memory);
    return std::make_unique<Memory>(held);
  }
  bool registers_sources() const override { return true; }
  bool gathers() const override { return true; }
  bool try_put(const Put&) override { return false; }
  bool try_send(int, const ControlMessage&) override { return false; }
  void progress(PortListener&) override {}
  bool is_quiet() const override { return true; }
  void shut(Parting /*parting*/) noexcept override {}

  int asked = 0;
  int held = 0;
  bool refuses = false;
  std::vector<ByteView> registered;

 private:
  struct Memory final : PutMemory {
    explicit Memory(int& count) : held(count) { ++held; }
    ~Memory() override { --held; }
    PutTarget target() const override { return {}; }
    int& held;
  };
};

class Registrations : public testing::Test {
 protected:
  static constexpr std::size_t kBlock = 64;
  ByteView block(std::size_t index) const {
    return ByteView(memory).subspan(index * kBlock, kBlock);
  }
  std::optional<UserBlock> look(const std::byte* at) const {
    const auto index = static_cast<std::size_t>(at - memory.data()) / kBlock;
    if (at < memory.data() || index >= numbers.size() || numbers[index] == 0) return std::nullopt;
    return UserBlock{block(index), numbers[index]};
  }

  static constexpr std::size_t kBlocks = RegistrationCache::kMost + 10;
  Bytes memory = Bytes(kBlocks * kBlock);
  std::vector<std::uint64_t> numbers = std::vector<std::uint64_t>(kBlocks);  // 0: no block
  CountingPort port;
  RegistrationCache cache{port, [this](const std::byte* at) { return look(at); }};
};

TEST_F(Registrations, are_made_once_and_of_the_whole_block) {
  numbers[1] = 7;
  const auto first = cache.find(block(1).subspan(10, 20));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(cache.find(block(1).first(1)), first);
  EXPECT_EQ(cache.find(block(1)), first);
  ASSERT_EQ(port.registered.size(), 1u);
  EXPECT_EQ(port.registered[0].data(), block(1).data());
  EXPECT_EQ(port.registered[0].size(), kBlock);
}

TEST_F(Registrations, are_of_blocks_only) {
  numbers[1] = 7;
  EXPECT_EQ(cache.find(block(0)), nullptr);
  EXPECT_EQ(cache.find({block(1).data() + 1, kBlock}), nullptr) << "reaches beyond the block";
  EXPECT_EQ(port.asked, 0);
  RegistrationCache without_blocks(port, {});
  EXPECT_EQ(without_blocks.find(block(1)), nullptr);
}

TEST_F(Registrations, of_a_block_that_was_freed_are_not_those_of_the_next_one_there) {
  numbers[1] = 7;
  const auto first = cache.find(block(1));
  numbers[1] = 8;
  const auto second = cache.find(block(1));
  EXPECT_NE(second, nullptr);
  EXPECT_NE(second, first);
  EXPECT_EQ(port.held, 2) << "who puts from the first holds it still";
}

TEST_F(Registrations, of_what_is_gone_are_given_up_when_another_is_made) {
  numbers[1] = 7;
  numbers[2] = 8;
  cache.find(block(1));
  EXPECT_EQ(port.held, 1);
  numbers[1] = 0;
  EXPECT_EQ(cache.find(block(1)), nullptr);
  cache.find(block(2));
  EXPECT_EQ(port.held, 1);
}

TEST_F(Registrations, are_bounded_and_the_one_not_used_for_longest_goes) {
  for (std::size_t i = 0; i < RegistrationCache::kMost; ++i) {
    numbers[i] = i + 1;
    cache.find(block(i));
  }
  cache.find(block(0));
  numbers[kBlocks - 1] = 99'999;
  cache.find(block(kBlocks - 1));
  EXPECT_EQ(port.held, static_cast<int>(RegistrationCache::kMost));
  const int asked = port.asked;
  cache.find(block(0));
  EXPECT_EQ(port.asked, asked);
  cache.find(block(1));
  EXPECT_EQ(port.asked, asked + 1);
}

TEST_F(Registrations, that_are_refused_are_not_tried_again) {
  numbers[1] = 7;
  port.refuses = true;
  EXPECT_EQ(cache.find(block(1)), nullptr);
  EXPECT_EQ(cache.find(block(1)), nullptr);
  EXPECT_EQ(port.asked, 1);
}

}  // namespace
}  // namespace catenary
