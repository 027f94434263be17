// The Python module torch_catenary._backend.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "attendants.h"
#include "backend.h"
#include "ends.h"
#include "memory.h"

namespace {

using catenary_torch::CatenaryBackend;

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                         int size, std::chrono::milliseconds timeout,
                                         const std::string& group_name,
                                         const std::vector<std::uint64_t>& global_ranks) {
  auto options = c10::make_intrusive<c10d::Backend::Options>(catenary_torch::kBackendName, timeout);
  options->group_name = group_name;
  options->global_ranks_in_group = global_ranks;
  return c10::make_intrusive<CatenaryBackend>(store, rank, size, options);
}

at::Tensor empty(const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  return catenary_torch::empty_in_shared_memory(sizes, type);
}

}  // namespace

PYBIND11_MODULE(_backend, module) {
  py::module::import("torch");
  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"),
             py::arg("timeout"), py::arg("group_name"), py::arg("global_ranks"),
             py::call_guard<py::gil_scoped_release>());
  module.def("is_in_shared_memory", &catenary_torch::is_in_shared_memory, py::arg("tensor"));
  module.def("allocate_large_in_shared_memory", &catenary_torch::allocate_large_in_shared_memory,
             py::arg("on"));
  module.def(
      "rest",
      [](std::chrono::milliseconds limit) {
        catenary_torch::Settlers::of_process().rest(limit);
        catenary_torch::Ends::of_process().leave();
      },
      py::arg("limit"), py::call_guard<py::gil_scoped_release>());
  module.def("empty", &empty, py::arg("sizes"), py::arg("dtype"));
}
