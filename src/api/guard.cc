#include "src/api/guard.h"

#include <system_error>

namespace catenary {
namespace {

ncclResult_t record(const Error& error) noexcept {
  CATENARY_WARN(error.what());
  Group::of_this_thread().note_error(error);
  return to_result(error);
}

}  // namespace

ncclResult_t to_result(const Error& error) noexcept {
  if (error.code() == ErrorCode::kTimeout) return ncclRemoteError;
  return static_cast<ncclResult_t>(error.code());
}

ncclResult_t translate_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return record(error);
  } catch (const std::bad_alloc&) {
    return record(Error(ErrorCode::kSystem, "out of memory"));
  } catch (const std::system_error& error) {
    // Of all that we ask the standard library for, only threads are refused in this way.
    return record(
        Error(ErrorCode::kSystem,
              format("cannot start a thread (see ulimit -u and the limits of the container): %s",
                     error.code().message().c_str())));
  } catch (const std::exception& error) {
    return record(Error(ErrorCode::kInternal, error.what()));
  }
}

}  // namespace catenary
