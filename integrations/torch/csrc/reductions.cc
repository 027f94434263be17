// The backend's collectives that reduce.
#include "backend.h"
#include "marks.h"
#include "memory.h"

namespace catenary_torch {
namespace {

constexpr int kEverybody = -1;

// How tensors like this one are reduced: complex numbers are added, averaged and scaled as two
// reals.
Reduced how_to_reduce(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (!tensor.is_complex()) return reduced(op, tensor.scalar_type());
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  TORCH_CHECK(kind == c10d::ReduceOp::SUM || kind == c10d::ReduceOp::AVG ||
                  kind == c10d::ReduceOp::PREMUL_SUM,
              "all_reduce and its family do not support this ReduceOp on complex tensors");
  return reduced(op, c10::toRealValueType(tensor.scalar_type()));
}

at::ScalarType type_of_place(const at::Tensor& tensor, const Reduced& how) {
  return tensor.is_complex() ? tensor.scalar_type() : how.computed_as;
}

// Of a place, which is no view that conjugates.
at::Tensor as_reals(const at::Tensor& place) {
  return place.is_complex() ? at::view_as_real(place) : place;
}

std::size_t count_of(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

void check_one(const std::vector<at::Tensor>& tensors, const char* name) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: ", name, " takes one tensor");
}

// One reduction. A folded one only moves; the rest is a copy out.
struct Reduction {
  std::uint32_t mark;
  at::Tensor in, out;
  Reduced how;
  std::unique_ptr<ScopedOp> op;
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
  const bool has_result = root == kEverybody || root == getRank();
  operation.reduction = op;
  if (root != kEverybody) operation.root = root;
  std::vector<Reduction> all;
  for (const at::Tensor& tensor : tensors) {
    operation.element = tensor.scalar_type();
    const std::uint32_t mark = mark_of(operation);
    const Reduced how = how_to_reduce(tensor, op);
    const at::ScalarType type = type_of_place(tensor, how);
    if (how.folded) {
      // A reduction that the library has not: everybody's input in everybody's memory.
      std::vector<std::int64_t> sizes = tensor.sizes().vec();
      sizes.insert(sizes.begin(), getSize());
      const at::Tensor rows = empty_in_shared_memory(sizes, type);
      all.push_back({mark, input(tensor, operation), rows, how, nullptr});
      operation.kept.push_back(rows);
      if (has_result) {
        operation.copies_out.emplace_back([rows, tensor, op] { write(tensor, fold(rows, op)); });
      }
    } else {
      const at::Tensor place = as_reals(in_place(tensor, operation, type, has_result));
      all.push_back({mark, place, place, how, std::make_unique<ScopedOp>(how, op, *communicator_)});
    }
  }
  const auto issue_one = [&](const Reduction& each, ncclComm_t comm, catStream_t stream) {
    const void* in = each.in.data_ptr();
    void* out = each.out.data_ptr();
    const std::size_t count = count_of(each.in);
    const ncclDataType_t type = each.how.type;
    if (count == 0) return issue_nothing(comm, stream);
    if (each.how.folded) {
      const Moved as = moved(each.in.scalar_type());
      return ncclAllGather(in, out, count * as.per_element, as.type, comm, stream);
    }
    return root == kEverybody
               ? ncclAllReduce(in, out, count, type, each.op->get(), comm, stream)
               : ncclReduce(in, out, count, type, each.op->get(), root, comm, stream);
  };
  return run(std::move(operation), root == kEverybody ? "ncclAllReduce" : "ncclReduce",
             [&](ncclComm_t comm, catStream_t stream) {
               if (all.size() == 1) return issue_one(all[0], comm, stream);
               ncclGroupStart();
               for (const Reduction& each : all) {
                 communicator_->mark(each.mark);
                 issue_one(each, comm, stream);
               }
               return ncclGroupEnd();  // says what went wrong with any of them
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
  const at::Tensor& result = outputs[0];
  TORCH_CHECK(inputs[0][static_cast<std::size_t>(getRank())].numel() == result.numel(),
              "backend catenary: reduce_scatter's output is not as long as this rank's input");
  const c10d::ReduceOp& op = options.reduceOp;
  made.reduction = op;
  const Reduced how = how_to_reduce(result, op);
  const at::ScalarType type = type_of_place(result, how);
  Tensors given;
  for (const at::Tensor& each : inputs[0]) given.push_back(as_reals(input(each, made, type)));
  const Parts parts(given, given[0].scalar_type());
  if (how.folded) {
    const at::Tensor all = empty_in_shared_memory({getSize(), result.numel()}, type);
    made.kept.push_back(all);
    made.copies_out.emplace_back(
        [all, result, op] { write(result, fold(all, op).reshape(result.sizes())); });
    const Parts rows(all, std::vector<std::int64_t>(static_cast<std::size_t>(getSize()), 1));
    return run(std::move(made), "catAlltoAllv", [&](ncclComm_t comm, catStream_t stream) {
      return catAlltoAllv(parts.base, parts.counts.data(), parts.displacements.data(), rows.base,
                          rows.counts.data(), rows.displacements.data(), rows.type, comm, stream);
    });
  }
  const at::Tensor place = as_reals(output(result, made, type));
  const ScopedOp scoped(how, op, *communicator_);
  // Also if the parts lie behind each other, which other ranks' may not: all must call the same.
  return run(std::move(made), "catReduceScatterv", [&](ncclComm_t comm, catStream_t stream) {
    if (parts.empty()) return issue_nothing(comm, stream);
    return catReduceScatterv(parts.base, parts.counts.data(), parts.displacements.data(),
                             place.data_ptr(), count_of(place), how.type, scoped.get(), comm,
                             stream);
  });
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
  operation.reduction = op;
  std::vector<Reduction> all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * getSize(),
                "backend catenary: reduce_scatter's input has ", inputs[i].numel(),
                " elements, its output ", outputs[i].numel(), " in a group of ", getSize());
    TORCH_CHECK(inputs[i].scalar_type() == outputs[i].scalar_type(),
                "backend catenary: reduce_scatter's input and output differ in type");
    const at::Tensor& out = outputs[i];
    operation.element = out.scalar_type();
    const std::uint32_t mark = mark_of(operation);
    const Reduced how = how_to_reduce(out, op);
    const at::ScalarType type = type_of_place(out, how);
    const at::Tensor in = as_reals(input(inputs[i], operation, type));
    if (how.folded) {
      const at::Tensor rows = empty_in_shared_memory({getSize(), out.numel()}, type);
      operation.kept.push_back(rows);
      operation.copies_out.emplace_back(
          [rows, out, op] { write(out, fold(rows, op).reshape(out.sizes())); });
      all.push_back({mark, in, rows, how, nullptr});
    } else {
      all.push_back({mark, in, as_reals(output(out, operation, type)), how,
                     std::make_unique<ScopedOp>(how, op, *communicator_)});
    }
  }
  const auto issue_one = [&](const Reduction& each, ncclComm_t comm, catStream_t stream) {
    const void* in = each.in.data_ptr();
    void* out = each.out.data_ptr();
    const std::size_t count = count_of(each.in) / static_cast<std::size_t>(getSize());
    if (count == 0) return issue_nothing(comm, stream);
    if (each.how.folded) {
      const Moved as = moved(each.in.scalar_type());
      return ncclAlltoAll(in, out, count * as.per_element, as.type, comm, stream);
    }
    return ncclReduceScatter(in, out, count, each.how.type, each.op->get(), comm, stream);
  };
  return run(std::move(operation), "ncclReduceScatter", [&](ncclComm_t comm, catStream_t stream) {
    if (all.size() == 1) return issue_one(all[0], comm, stream);
    ncclGroupStart();
    for (const Reduction& each : all) {
      communicator_->mark(each.mark);
      issue_one(each, comm, stream);
    }
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
  made.element = tensor.scalar_type();
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
  made.copies_out.emplace_back([tensor, all_indices, all_values] {
    const at::Tensor sum =
        at::sparse_coo_tensor(all_indices.t(), all_values, tensor.sizes(), tensor.options())
            .coalesce();
    write(tensor, sum);
  });
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
