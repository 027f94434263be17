// The backend's collectives that move data and reduce nothing.
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "backend.h"
#include "marks.h"
#include "memory.h"

namespace catenary_torch {
namespace {

std::size_t units(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * moved(tensor.scalar_type()).per_element;
}

std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& splits, const at::Tensor& tensor,
                                  int size) {
  if (!splits.empty()) return splits;
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  return std::vector<std::int64_t>(static_cast<std::size_t>(size), rows / size);
}

// One tensor, which goes to or comes from one peer.
std::vector<at::Tensor> only(const at::Tensor& tensor, int peer, int size) {
  std::vector<at::Tensor> all(static_cast<std::size_t>(size));
  all[static_cast<std::size_t>(peer)] = tensor;
  return all;
}

}  // namespace

CatenaryBackend::WorkPtr CatenaryBackend::broadcast(Tensors& tensors,
                                                    const c10d::BroadcastOptions& options) {
  TORCH_CHECK(tensors.size() == 1 && options.rootTensor == 0,
              "backend catenary: broadcast takes one tensor");
  check_root(options.rootRank, "broadcast");
  const int root = static_cast<int>(options.rootRank);
  Operation made = operation(c10d::OpType::BROADCAST, "catenary:broadcast", options.timeout);
  made.inputs = made.outputs = tensors;
  made.root = root;
  const at::Tensor place = root == getRank() ? input(tensors[0], made) : output(tensors[0], made);
  return run(std::move(made), "ncclBroadcast", [&](ncclComm_t comm, catStream_t stream) {
    if (place.numel() == 0) return issue_nothing(comm, stream);
    return ncclBroadcast(place.data_ptr(), place.data_ptr(), units(place),
                         moved(place.scalar_type()).type, root, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                    const c10d::AllgatherOptions& options) {
  TORCH_CHECK(inputs.size() == 1 && outputs.size() == 1 &&
                  outputs[0].size() == static_cast<std::size_t>(getSize()),
              "backend catenary: all_gather takes one tensor, and one output for each rank");
  Operation made = operation(c10d::OpType::ALLGATHER, "catenary:all_gather", options.timeout);
  made.inputs = inputs;
  made.outputs = outputs[0];
  const at::Tensor& own = outputs[0][static_cast<std::size_t>(getRank())];
  TORCH_CHECK(own.numel() == inputs[0].numel(), "backend catenary: all_gather's output for rank ",
              getRank(), " has ", own.numel(), " elements, its input ", inputs[0].numel());
  for (const at::Tensor& each : outputs[0]) {
    TORCH_CHECK(each.scalar_type() == inputs[0].scalar_type(),
                "Invalid usage of tensors with different dtypes: all_gather of ",
                inputs[0].scalar_type(), " into ", each.scalar_type());
  }
  const at::Tensor mine = input(inputs[0], made);
  const Parts parts(list(outputs[0], true, made), mine.scalar_type());
  const std::size_t count = units(mine);
  // Also if the parts lie behind each other, which other ranks' may not: all must call the same.
  return run(std::move(made), "catAllGatherv", [&](ncclComm_t comm, catStream_t stream) {
    if (parts.empty()) return issue_nothing(comm, stream);
    return catAllGatherv(mine.data_ptr(), count, parts.base, parts.counts.data(),
                         parts.displacements.data(), parts.type, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::_allgather_base(at::Tensor& output_tensor,
                                                          at::Tensor& input_tensor,
                                                          const c10d::AllgatherOptions& options) {
  Operation made =
      operation(c10d::OpType::_ALLGATHER_BASE, "catenary:_all_gather_base", options.timeout);
  return gather_many({output_tensor}, {input_tensor}, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  Operation made = operation(c10d::OpType::ALLGATHER_COALESCED,
                             "catenary:all_gather_into_tensor_coalesced", options.timeout);
  return gather_many(outputs, inputs, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::gather_many(const Tensors& outputs, const Tensors& inputs,
                                                      Operation operation) {
  TORCH_CHECK(!outputs.empty() && outputs.size() == inputs.size(),
              "backend catenary: all_gather needs as many outputs as inputs");
  struct Pair {
    std::uint32_t mark;
    at::Tensor in, out;
  };
  std::vector<Pair> pairs;
  operation.inputs = inputs;
  operation.outputs = outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * getSize(),
                "backend catenary: all_gather's output has ", outputs[i].numel(),
                " elements, its input ", inputs[i].numel(), " in a group of ", getSize());
    TORCH_CHECK(outputs[i].scalar_type() == inputs[i].scalar_type(),
                "backend catenary: all_gather's input and output differ in type");
    operation.element = inputs[i].scalar_type();
    const at::Tensor in = input(inputs[i], operation);
    pairs.push_back({mark_of(operation), in, output(outputs[i], operation)});
  }
  const auto issue_one = [](const Pair& pair, ncclComm_t comm, catStream_t stream) {
    if (pair.in.numel() == 0) return issue_nothing(comm, stream);
    return ncclAllGather(pair.in.data_ptr(), pair.out.data_ptr(), units(pair.in),
                         moved(pair.in.scalar_type()).type, comm, stream);
  };
  return run(std::move(operation), "ncclAllGather", [&](ncclComm_t comm, catStream_t stream) {
    if (pairs.size() == 1) return issue_one(pairs[0], comm, stream);
    ncclGroupStart();
    for (const Pair& pair : pairs) {
      communicator_->mark(pair.mark);
      issue_one(pair, comm, stream);
    }
    return ncclGroupEnd();  // says what went wrong with any of them
  });
}

// outputs[r][i] is what rank r gave as inputs[i].
CatenaryBackend::WorkPtr CatenaryBackend::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(getSize()),
              "backend catenary: all_gather_coalesced takes a list for each rank");
  Operation made =
      operation(c10d::OpType::ALLGATHER_COALESCED, "catenary:all_gather", options.timeout);
  made.inputs = inputs;
  std::vector<std::uint32_t> marks;
  std::vector<at::Tensor> mine;
  std::vector<Parts> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors row;
    for (const Tensors& of_rank : outputs) {
      TORCH_CHECK(of_rank.size() == inputs.size() && of_rank[i].numel() == inputs[i].numel(),
                  "backend catenary: all_gather_coalesced's outputs do not fit its inputs");
      row.push_back(of_rank[i]);
      made.outputs.push_back(of_rank[i]);
    }
    made.element = inputs[i].scalar_type();
    marks.push_back(mark_of(made));
    mine.push_back(input(inputs[i], made));
    parts.emplace_back(list(row, true, made), inputs[i].scalar_type());
  }
  const auto own = static_cast<std::size_t>(getRank());
  return run(std::move(made), "catAllGatherv", [&](ncclComm_t comm, catStream_t stream) {
    ncclGroupStart();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      communicator_->mark(marks[i]);
      if (parts[i].empty()) {
        issue_nothing(comm, stream);
        continue;
      }
      catAllGatherv(mine[i].data_ptr(), parts[i].counts[own], parts[i].base, parts[i].counts.data(),
                    parts[i].displacements.data(), parts[i].type, comm, stream);
    }
    return ncclGroupEnd();  // says what went wrong with any of them
  });
}

// Gather and scatter are an all-to-all in which most parts are empty, so that tensors need not lie
// behind each other at the root.
CatenaryBackend::WorkPtr CatenaryBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                 const c10d::GatherOptions& options) {
  check_root(options.rootRank, "gather");
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK(inputs.size() == 1, "backend catenary: gather takes one tensor");
  Operation made = operation(c10d::OpType::GATHER, "catenary:gather", options.timeout);
  made.inputs = inputs;
  made.root = root;
  const at::ScalarType type = inputs[0].scalar_type();
  const Parts sent(only(input(inputs[0], made), root, getSize()), type);
  Tensors places(static_cast<std::size_t>(getSize()));
  if (root == getRank()) {
    TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == places.size(),
                "backend catenary: gather takes one output for each rank at its root");
    for (const at::Tensor& each : outputs[0]) {
      TORCH_CHECK(each.numel() == inputs[0].numel() && each.scalar_type() == type,
                  "backend catenary: gather's outputs are not like its input");
    }
    made.outputs = outputs[0];
    places = list(outputs[0], true, made);
  } else {
    TORCH_CHECK(outputs.empty(), "requires empty output on non-root");
  }
  const Parts taken(places, type);
  return run(std::move(made), "catAlltoAllv", [&](ncclComm_t comm, catStream_t stream) {
    return catAlltoAllv(sent.base, sent.counts.data(), sent.displacements.data(), taken.base,
                        taken.counts.data(), taken.displacements.data(), sent.type, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                  const c10d::ScatterOptions& options) {
  check_root(options.rootRank, "scatter");
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK(outputs.size() == 1, "backend catenary: scatter takes one output");
  Operation made = operation(c10d::OpType::SCATTER, "catenary:scatter", options.timeout);
  made.outputs = outputs;
  made.root = root;
  const at::ScalarType type = outputs[0].scalar_type();
  Tensors given(static_cast<std::size_t>(getSize()));
  if (root == getRank()) {
    TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == given.size(),
                "backend catenary: scatter takes one tensor for each rank at its root");
    for (const at::Tensor& each : inputs[0]) {
      TORCH_CHECK(each.numel() == outputs[0].numel() && each.scalar_type() == type,
                  "backend catenary: scatter's inputs are not like its output");
    }
    made.inputs = inputs[0];
    given = list(inputs[0], false, made);
  } else {
    TORCH_CHECK(inputs.empty(), "requires empty input on non-root");
  }
  const Parts sent(given, type);
  const Parts taken(only(output(outputs[0], made), root, getSize()), type);
  return run(std::move(made), "catAlltoAllv", [&](ncclComm_t comm, catStream_t stream) {
    return catAlltoAllv(sent.base, sent.counts.data(), sent.displacements.data(), taken.base,
                        taken.counts.data(), taken.displacements.data(), taken.type, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::alltoall_base(at::Tensor& output_tensor,
                                                        at::Tensor& input_tensor,
                                                        std::vector<std::int64_t>& output_splits,
                                                        std::vector<std::int64_t>& input_splits,
                                                        const c10d::AllToAllOptions& options) {
  TORCH_CHECK(output_tensor.scalar_type() == input_tensor.scalar_type(),
              "backend catenary: all_to_all's input and output differ in type");
  c10d::checkSplitSizes(input_splits, input_tensor, getSize());
  c10d::checkSplitSizes(output_splits, output_tensor, getSize());
  Operation made = operation(c10d::OpType::ALLTOALL_BASE, "catenary:all_to_all", options.timeout);
  made.inputs = {input_tensor};
  made.outputs = {output_tensor};
  const at::Tensor in = input(input_tensor, made);
  const at::Tensor out = output(output_tensor, made);
  const Parts sent(in, rows_of(input_splits, in, getSize()));
  const Parts taken(out, rows_of(output_splits, out, getSize()));
  // Without splits too: others may have been given equal ones, and all must call the same.
  return run(std::move(made), "catAlltoAllv", [&](ncclComm_t comm, catStream_t stream) {
    return catAlltoAllv(sent.base, sent.counts.data(), sent.displacements.data(), taken.base,
                        taken.counts.data(), taken.displacements.data(), sent.type, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                   const c10d::AllToAllOptions& options) {
  const auto size = static_cast<std::size_t>(getSize());
  TORCH_CHECK(inputs.size() == size && outputs.size() == size,
              "backend catenary: all_to_all takes one input and one output for each rank");
  Operation made = operation(c10d::OpType::ALLTOALL, "catenary:all_to_all", options.timeout);
  made.inputs = inputs;
  made.outputs = outputs;
  const at::ScalarType type = inputs[0].scalar_type();
  for (std::size_t i = 0; i < size; ++i) {
    TORCH_CHECK(inputs[i].scalar_type() == type && outputs[i].scalar_type() == type,
                "backend catenary: all_to_all's tensors differ in type");
  }
  const Parts sent(list(inputs, false, made), type);
  const Parts taken(list(outputs, true, made), type);
  return run(std::move(made), "catAlltoAllv", [&](ncclComm_t comm, catStream_t stream) {
    return catAlltoAllv(sent.base, sent.counts.data(), sent.displacements.data(), taken.base,
                        taken.counts.data(), taken.displacements.data(), sent.type, comm, stream);
  });
}

}  // namespace catenary_torch
