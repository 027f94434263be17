// The tasks that the device itself puts into streams: marks for events, the user's functions,
// copies and fills. They never fail, unless the system has no thread left for a lane.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/size_literals.h"
#include "src/device/event.h"
#include "src/device/lane.h"
#include "src/device/rows.h"
#include "src/device/stream.h"
#include "src/device/task.h"

namespace catenary {

// What takes longer than a poll should: more bytes than this are copied on the copy lane.
inline constexpr std::size_t kMostPolledBytes = 64_KB;

TaskPtr make_record_task(std::shared_ptr<EventPoint> point);
TaskPtr make_wait_task(std::shared_ptr<EventPoint> point);
TaskPtr make_host_function_task(Device& device, Stream::HostFunction function, void* data);
TaskPtr make_copy_task(Device& device, void* to, const void* from, std::size_t bytes);
TaskPtr make_fill_task(Device& device, void* to, int value, std::size_t bytes);
TaskPtr make_rows_task(Device& device, const RowCopy& rows);
TaskPtr make_rows_task(Device& device, const RowFill& rows);

}  // namespace catenary
