// The backend's collectives that reduce.
#include "backend.h"
#include "memory.h"

namespace catenary_torch {
namespace {

constexpr int kEverybody = -1;

// Complex numbers are added, averaged and scaled as two reals.
at::Tensor as_reals(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (!tensor.is_complex()) return tensor;
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  TORCH_CHECK(kind == c10d::ReduceOp::SUM || kind == c10d::ReduceOp::AVG ||
                  kind == c10d::ReduceOp::PREMUL_SUM,
              "all_reduce and its family do not support this ReduceOp on complex tensors");
  return at::view_as_real(tensor.resolve_conj());
}

at::Tensor converted(const at::Tensor& tensor, at::ScalarType type) {
  at::Tensor place = empty_in_shared_memory(tensor.sizes(), type);
  place.copy_(tensor);
  return place;
}

std::size_t count_of(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

void check_one(const std::vector<at::Tensor>& tensors, const char* name) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: ", name, " takes one tensor");
}

struct Place {
  at::Tensor tensor;
  Reduced how;
};

}  // namespace

CatenaryBackend::WorkPtr CatenaryBackend::allreduce(Tensors& tensors,
                                                    const c10d::AllreduceOptions& options) {
  check_one(tensors, "all_reduce");
  if (tensors[0].layout() != at::kStrided) return allreduce_sparse(tensors, options);
  Operation made = operation(c10d::OpType::ALLREDUCE, "catenary:all_reduce", options.timeout);
  made.inputs = made.outputs = tensors;
  return reduce_many(tensors, kEverybody, options.reduceOp, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Operation made =
      operation(c10d::OpType::ALLREDUCE_COALESCED, "catenary:all_reduce", options.timeout);
  made.inputs = made.outputs = tensors;
  return reduce_many(tensors, kEverybody, options.reduceOp, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::reduce(Tensors& tensors,
                                                 const c10d::ReduceOptions& options) {
  check_one(tensors, "reduce");
  check_root(options.rootRank, "reduce");
  Operation made = operation(c10d::OpType::REDUCE, "catenary:reduce", options.timeout);
  made.inputs = made.outputs = tensors;
  return reduce_many(tensors, static_cast<int>(options.rootRank), options.reduceOp,
                     std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::reduce_many(Tensors tensors, int root,
                                                      const c10d::ReduceOp& op,
                                                      Operation operation) {
  TORCH_CHECK(!tensors.empty(), "backend catenary: nothing to reduce");
  std::vector<Place> places;
  for (at::Tensor& each : tensors) {
    const at::Tensor tensor = as_reals(each, op);
    const Reduced how = reduced(op, tensor.scalar_type());
    if (how.folded && tensors.size() == 1) return fold_all(tensor, root, op, std::move(operation));
    TORCH_CHECK(!how.folded, "backend catenary: bitwise operations are not coalesced");
    if (how.computed_as != tensor.scalar_type()) {
      settle_copies(true);
      at::Tensor place = converted(tensor, how.computed_as);
      operation.kept.push_back(place);
      if (root == kEverybody || root == getRank()) copy_later(place, tensor, operation);
      places.push_back({place, how});
    } else {
      places.push_back({in_place(tensor, operation), how});
    }
  }
  const ScopedOp scoped(places[0].how, op, *communicator_);
  const auto issue_one = [&](const Place& place, ncclComm_t comm, catStream_t stream) {
    void* memory = place.tensor.data_ptr();
    const std::size_t count = count_of(place.tensor);
    return root == kEverybody
               ? ncclAllReduce(memory, memory, count, place.how.type, scoped.get(), comm, stream)
               : ncclReduce(memory, memory, count, place.how.type, scoped.get(), root, comm,
                            stream);
  };
  return run(std::move(operation), root == kEverybody ? "ncclAllReduce" : "ncclReduce",
             [&](ncclComm_t comm, catStream_t stream) {
               if (places.size() == 1) return issue_one(places[0], comm, stream);
               ncclGroupStart();
               for (const Place& place : places) issue_one(place, comm, stream);
               return ncclGroupEnd();  // says what went wrong with any of them
             });
}

// A reduction that the library has not: everybody's input in everybody's memory.
CatenaryBackend::WorkPtr CatenaryBackend::fold_all(const at::Tensor& tensor, int root,
                                                   const c10d::ReduceOp& op, Operation operation) {
  settle_copies(true);
  const at::Tensor mine = input(tensor, operation);
  std::vector<std::int64_t> sizes = mine.sizes().vec();
  sizes.insert(sizes.begin(), getSize());
  const at::Tensor all = empty_in_shared_memory(sizes, mine.scalar_type());
  if (root == kEverybody || root == getRank()) {
    operation.copy_out = [all, tensor, op] { tensor.copy_(fold(all, op)); };
  }
  operation.kept.push_back(all);
  const Moved how = moved(mine.scalar_type());
  const std::size_t count = count_of(mine) * how.per_element;
  return run(std::move(operation), "ncclAllGather", [&](ncclComm_t comm, catStream_t stream) {
    return ncclAllGather(mine.data_ptr(), all.data_ptr(), count, how.type, comm, stream);
  });
}

CatenaryBackend::WorkPtr CatenaryBackend::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) {
  check_one(outputs, "reduce_scatter");
  TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
              "backend catenary: reduce_scatter takes one tensor for each rank");
  Operation made =
      operation(c10d::OpType::REDUCE_SCATTER, "catenary:reduce_scatter", options.timeout);
  made.inputs = inputs[0];
  made.outputs = outputs;
  for (const at::Tensor& each : inputs[0]) {
    TORCH_CHECK(each.scalar_type() == outputs[0].scalar_type(),
                "backend catenary: reduce_scatter's tensors differ in type");
  }
  const Reduced how =
      reduced(options.reduceOp, as_reals(outputs[0], options.reduceOp).scalar_type());
  const bool direct = !how.folded && how.computed_as == outputs[0].scalar_type();
  if (direct) {
    const Parts parts(list(inputs[0], false, made), outputs[0].scalar_type());
    const at::Tensor place = output(outputs[0], made);
    TORCH_CHECK(parts.counts[static_cast<std::size_t>(getRank())] == count_of(place),
                "backend catenary: reduce_scatter's output is not as long as this rank's input");
    const ScopedOp scoped(how, options.reduceOp, *communicator_);
    return run(std::move(made), "catReduceScatterv", [&](ncclComm_t comm, catStream_t stream) {
      if (parts.is_even()) {
        return ncclReduceScatter(parts.base, place.data_ptr(), count_of(place), how.type,
                                 scoped.get(), comm, stream);
      }
      return catReduceScatterv(parts.base, parts.counts.data(), parts.displacements.data(),
                               place.data_ptr(), count_of(place), how.type, scoped.get(), comm,
                               stream);
    });
  }
  Tensors flat;
  for (const at::Tensor& each : inputs[0]) flat.push_back(each.reshape({-1}));
  return scatter_many(outputs, {at::cat(flat)}, options.reduceOp, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::_reduce_scatter_base(
    at::Tensor& output_tensor, at::Tensor& input_tensor,
    const c10d::ReduceScatterOptions& options) {
  Operation made = operation(c10d::OpType::_REDUCE_SCATTER_BASE, "catenary:_reduce_scatter_base",
                             options.timeout);
  made.inputs = {input_tensor};
  made.outputs = {output_tensor};
  return scatter_many({output_tensor}, {input_tensor}, options.reduceOp, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  Operation made = operation(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED,
                             "catenary:reduce_scatter_tensor_coalesced", options.timeout);
  made.inputs = inputs;
  made.outputs = outputs;
  return scatter_many(outputs, inputs, options.reduceOp, std::move(made));
}

CatenaryBackend::WorkPtr CatenaryBackend::scatter_many(const Tensors& outputs,
                                                       const Tensors& inputs,
                                                       const c10d::ReduceOp& op,
                                                       Operation operation) {
  TORCH_CHECK(!outputs.empty() && outputs.size() == inputs.size(),
              "backend catenary: reduce_scatter needs as many outputs as inputs");
  struct Pair {
    at::Tensor in, out;
  };
  std::vector<Pair> pairs;
  Reduced how;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * getSize(),
                "backend catenary: reduce_scatter's input has ", inputs[i].numel(),
                " elements, its output ", outputs[i].numel(), " in a group of ", getSize());
    TORCH_CHECK(inputs[i].scalar_type() == outputs[i].scalar_type(),
                "backend catenary: reduce_scatter's input and output differ in type");
    const at::Tensor in = as_reals(inputs[i], op);
    const at::Tensor out = as_reals(outputs[i], op);
    how = reduced(op, in.scalar_type());
    if (how.folded) {
      const at::Tensor mine = input(in, operation);
      const at::Tensor all = empty_in_shared_memory({getSize(), out.numel()}, out.scalar_type());
      settle_copies(true);
      operation.copy_out = [before = std::move(operation.copy_out), all, out, op] {
        if (before) before();
        out.copy_(fold(all, op).reshape(out.sizes()));
      };
      pairs.push_back({mine, all});
    } else if (how.computed_as != in.scalar_type()) {
      settle_copies(true);
      const at::Tensor place = empty_in_shared_memory(out.sizes(), how.computed_as);
      copy_later(place, out, operation);
      pairs.push_back({converted(in, how.computed_as), place});
    } else {
      const at::Tensor mine = input(in, operation);
      pairs.push_back({mine, output(out, operation)});
    }
    operation.kept.push_back(pairs.back().in);
    operation.kept.push_back(pairs.back().out);
  }
  const ScopedOp scoped(how, op, *communicator_);
  const auto issue_one = [&](const Pair& pair, ncclComm_t comm, catStream_t stream) {
    const std::size_t count = count_of(pair.in) / static_cast<std::size_t>(getSize());
    if (how.folded) {
      const Moved as = moved(pair.in.scalar_type());
      return ncclAlltoAll(pair.in.data_ptr(), pair.out.data_ptr(), count * as.per_element, as.type,
                          comm, stream);
    }
    return ncclReduceScatter(pair.in.data_ptr(), pair.out.data_ptr(), count, how.type, scoped.get(),
                             comm, stream);
  };
  return run(std::move(operation), "ncclReduceScatter", [&](ncclComm_t comm, catStream_t stream) {
    if (pairs.size() == 1) return issue_one(pairs[0], comm, stream);
    ncclGroupStart();
    for (const Pair& pair : pairs) issue_one(pair, comm, stream);
    return ncclGroupEnd();  // says what went wrong with any of them
  });
}

// Coordinates and values differ in number from rank to rank, so their numbers go first, and that
// part waits.
CatenaryBackend::WorkPtr CatenaryBackend::allreduce_sparse(Tensors& tensors,
                                                           const c10d::AllreduceOptions& options) {
  check_one(tensors, "all_reduce");
  TORCH_CHECK(tensors[0].layout() == at::kSparse,
              "backend catenary: all_reduce takes dense and sparse COO tensors");
  TORCH_CHECK(static_cast<c10d::ReduceOp::RedOpType>(options.reduceOp) == c10d::ReduceOp::SUM,
              "backend catenary: sparse tensors can only be added");
  const at::Tensor tensor = tensors[0];
  const at::Tensor mine = tensor.coalesce();
  const auto size = static_cast<std::size_t>(getSize());
  at::Tensor count = at::tensor({mine._nnz()}, at::kLong);
  at::Tensor counts = at::empty({getSize()}, at::kLong);
  c10d::AllgatherOptions gather_options;
  gather_options.timeout = options.timeout;
  _allgather_base(counts, count, gather_options)->wait();

  Operation made =
      operation(c10d::OpType::_ALLREDUCE_SPARSE, "catenary:sparse_all_reduce", options.timeout);
  made.outputs = tensors;
  const at::Tensor indices = mine._indices().t().contiguous();
  const at::Tensor values = mine._values().contiguous();
  made.kept = {indices, values};
  std::vector<std::int64_t> rows(counts.data_ptr<std::int64_t>(),
                                 counts.data_ptr<std::int64_t>() + size);
  const std::int64_t total = counts.sum().item<std::int64_t>();
  std::vector<std::int64_t> value_sizes = values.sizes().vec();
  value_sizes[0] = total;
  const at::Tensor all_indices = at::empty({total, indices.size(1)}, at::kLong);
  const at::Tensor all_values = at::empty(value_sizes, values.options());
  made.copy_out = [tensor, all_indices, all_values] {
    const at::Tensor sum =
        at::sparse_coo_tensor(all_indices.t(), all_values, tensor.sizes(), tensor.options())
            .coalesce();
    const at::NoGradGuard no_grad;
    tensor.copy_(sum);
  };
  const Parts index_parts(all_indices, rows);
  const Parts value_parts(all_values, rows);
  const auto own = static_cast<std::size_t>(getRank());
  return run(std::move(made), "catAllGatherv", [&](ncclComm_t comm, catStream_t stream) {
    ncclGroupStart();
    catAllGatherv(indices.data_ptr(), index_parts.counts[own], index_parts.base,
                  index_parts.counts.data(), index_parts.displacements.data(), index_parts.type,
                  comm, stream);
    catAllGatherv(values.data_ptr(), value_parts.counts[own], value_parts.base,
                  value_parts.counts.data(), value_parts.displacements.data(), value_parts.type,
                  comm, stream);
    return ncclGroupEnd();  // says what went wrong with any of them
  });
}

}  // namespace catenary_torch
