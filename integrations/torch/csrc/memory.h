// Memory that other ranks of this machine read where it lies.
//
// Tensors in it move without a copy at the sender's side. Freed blocks are kept for the next tensor
// of a like size, since mapping memory anew costs more than filling it. Staged stands in for a
// tensor that is not laid out as the library needs it.
//
// Threads: any. Waiting: none. Owner: each block by its tensor's storage. Failure: DistBackendError
// if the library has no memory left.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include <memory>

namespace catenary_torch {

// For tensors of users. Lasts as long as the process.
const std::shared_ptr<c10::Allocator>& shared_memory();

at::Tensor empty_in_shared_memory(at::IntArrayRef sizes, at::ScalarType type);

// Whether the tensor lies there.
bool is_in_shared_memory(const at::Tensor& tensor);

// While it is on, all large CPU tensors that torch makes in this process lie there.
void allocate_large_in_shared_memory(bool on);

// Whether the library can use the tensor's memory as it is: its elements one behind the other,
// and aligned.
bool is_plain(const at::Tensor& tensor);

// The tensor itself if it is plain and of this type, or else plain memory for as many elements.
at::Tensor plain_place(const at::Tensor& tensor, at::ScalarType type);

// to.copy_(from) on any thread: without gradients, also if `to` was made in inference mode.
void write(const at::Tensor& to, const at::Tensor& from);

}  // namespace catenary_torch
