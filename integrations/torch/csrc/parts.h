// Parts: a list of tensors as the library's uneven collectives take it, one base address and a
// displacement for each, so that tensors need not lie behind each other.
//
// Threads: any. Owner: the caller keeps the tensors alive.
#pragma once

#include <ATen/ATen.h>
#include <nccl.h>

#include <vector>

namespace catenary_torch {

struct Parts {
  // One plain tensor of `type` a rank; an undefined one is an empty part.
  Parts(const std::vector<at::Tensor>& tensors, at::ScalarType type);
  // Rows of one plain tensor.
  Parts(const at::Tensor& tensor, const std::vector<std::int64_t>& rows);

  // Whether nothing is in any of them.
  bool empty() const;

  std::byte* base = nullptr;
  ncclDataType_t type;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
};

}  // namespace catenary_torch
