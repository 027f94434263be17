#include "src/api/guard.h"

namespace catenary {
namespace {

ncclResult_t record(const Error& error) noexcept {
  if (!error.told()) CATENARY_WARN(error.what());
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
    return record(error);  // not a copy, which takes memory
  } catch (const std::exception& error) {
    return record(as_error(error));
  }
}

}  // namespace catenary
