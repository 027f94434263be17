#include "memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

#include "library.h"

namespace catenary_torch {
namespace {

constexpr std::size_t kLeastBlock = 4096;
constexpr std::size_t kLarge = 65536;

// Blocks of sizes that are powers of two or one and a half of those. None goes back to the library:
// catFree waits for all work of the device, and so might wait for ever where a tensor is dropped.
class Blocks {
 public:
  static Blocks& of_process() {
    static auto* blocks = new Blocks;
    return *blocks;
  }

  static std::size_t rounded(std::size_t bytes) {
    const std::size_t power = std::bit_ceil(std::max(bytes, kLeastBlock));
    const std::size_t three_quarters = power / 4 * 3;
    return bytes <= three_quarters && three_quarters >= kLeastBlock ? three_quarters : power;
  }

  void* take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<void*>& same = free_[index(bytes)];
      if (!same.empty()) {
        void* block = same.back();
        same.pop_back();
        return block;
      }
    }
    void* block = nullptr;
    require(catMalloc(&block, bytes), "catMalloc");
    return block;
  }

  void give_back(void* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[index(bytes)].push_back(block);
  }

 private:
  static std::size_t index(std::size_t bytes) {
    return 2 * static_cast<std::size_t>(std::bit_width(bytes)) +
           (std::has_single_bit(bytes) ? 0 : 1);
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, 132> free_;
};

struct Block {
  void* memory;
  std::size_t bytes;
};

void release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  Blocks::of_process().give_back(block->memory, block->bytes);
}

class SharedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device cpu(c10::kCPU);
    if (bytes == 0) return {nullptr, nullptr, &release, cpu};
    auto block = std::make_unique<Block>();
    block->bytes = Blocks::rounded(bytes);
    block->memory = Blocks::of_process().take(block->bytes);
    void* memory = block->memory;
    return {memory, block.release(), &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const final {
    default_copy_data(to, from, bytes);
  }
};

// Stands in for torch's allocator of CPU memory, which still serves what is small.
class LargeInSharedMemory final : public c10::Allocator {
 public:
  explicit LargeInSharedMemory(c10::Allocator* usual) : usual_(usual) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    return bytes < kLarge ? usual_->allocate(bytes) : shared_memory()->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const final {
    default_copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* const usual_;
};

}  // namespace

bool is_in_shared_memory(const at::Tensor& tensor) {
  catPointerAttributes attributes{};
  require(catPointerGetAttributes(&attributes, tensor.data_ptr()), "catPointerGetAttributes");
  return attributes.type == catMemoryTypeDevice;
}

void allocate_large_in_shared_memory(bool on) {
  constexpr std::uint8_t kAboveAll = 255;
  static c10::Allocator* const usual = c10::GetCPUAllocator();
  static auto* const ours = new LargeInSharedMemory(usual);
  c10::SetCPUAllocator(on ? ours : usual, kAboveAll);
}

const std::shared_ptr<c10::Allocator>& shared_memory() {
  static const auto* memory = new std::shared_ptr<c10::Allocator>(new SharedMemory);
  return *memory;
}

at::Tensor empty_in_shared_memory(at::IntArrayRef sizes, at::ScalarType type) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const std::size_t bytes = static_cast<std::size_t>(count) * c10::elementSize(type);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(bytes),
      shared_memory()->allocate(bytes), shared_memory().get(), false);
  return at::empty({0}, at::TensorOptions().dtype(type).device(at::kCPU))
      .set_(c10::Storage(storage), 0, sizes);
}

bool is_plain(const at::Tensor& tensor) {
  if (!tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg()) return false;
  return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % tensor.element_size() == 0;
}

at::Tensor plain_place(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.scalar_type() == type && is_plain(tensor)) return tensor;
  return empty_in_shared_memory(tensor.sizes(), type);
}

void write(const at::Tensor& to, const at::Tensor& from) {
  const at::NoGradGuard no_grad;
  const c10::InferenceMode mode(to.is_inference());
  to.copy_(from);
}

}  // namespace catenary_torch
