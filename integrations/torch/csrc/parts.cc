#include "parts.h"

#include <algorithm>

#include "elements.h"

namespace catenary_torch {
namespace {

std::byte* address(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

std::size_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::size_t>(tensor.nbytes()) : 0;
}

}  // namespace

Parts::Parts(const std::vector<at::Tensor>& tensors, at::ScalarType element)
    : type(moved(element).type) {
  const std::size_t unit = c10::elementSize(element) / moved(element).per_element;
  for (const at::Tensor& tensor : tensors) {
    if (bytes_of(tensor) == 0) continue;
    base = base != nullptr ? std::min(base, address(tensor)) : address(tensor);
  }
  for (const at::Tensor& tensor : tensors) {
    const std::size_t bytes = bytes_of(tensor);
    counts.push_back(bytes / unit);
    displacements.push_back(bytes == 0 ? 0
                                       : static_cast<std::size_t>(address(tensor) - base) / unit);
  }
}

Parts::Parts(const at::Tensor& tensor, const std::vector<std::int64_t>& rows)
    : base(address(tensor)), type(moved(tensor.scalar_type()).type) {
  const std::int64_t all_rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const std::size_t per_row = all_rows == 0 ? 0
                                            : static_cast<std::size_t>(tensor.numel() / all_rows) *
                                                  moved(tensor.scalar_type()).per_element;
  std::size_t begin = 0;
  for (const std::int64_t count : rows) {
    counts.push_back(static_cast<std::size_t>(count) * per_row);
    displacements.push_back(begin);
    begin += counts.back();
  }
}

bool Parts::empty() const {
  return std::all_of(counts.begin(), counts.end(), [](std::size_t count) { return count == 0; });
}

}  // namespace catenary_torch
