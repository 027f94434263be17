// libfabric, loaded when it is first asked for: a program on one machine pays nothing for it, and
// one on a machine without it runs.
//
// Any thread. Loading may take a tenth of a second, once. Failure: throws kSystem, each time anew.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <memory>
#include <string>

namespace catenary::ofi {

// The functions that are not inline in its headers.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) open_fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;
};
const Library& library();

// Endpoints, domains and so on: everything that is closed with fi_close.
struct Closer {
  template <typename T>
  void operator()(T* object) const noexcept {
    ::fi_close(&object->fid);
  }
};
template <typename T>
using Owned = std::unique_ptr<T, Closer>;

struct InfoCloser {
  void operator()(fi_info* info) const noexcept { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoCloser>;
Info copy_of(const fi_info* info);  // of nullptr: an empty one

// "Connection refused (-111), the port of a rank that is gone ...": what libfabric calls an error,
// and what it means to the user where that is not the same. `number` of either sign.
std::string error_text(int number);
[[noreturn]] void throw_fabric_error(const std::string& what, int number);

}  // namespace catenary::ofi
