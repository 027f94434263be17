#include "bench/perf/device_stream.h"

#include <string>

#include "bench/perf/failure.h"

namespace catenary::perf {

void check_device(catError_t result, std::source_location where) {
  if (result == catSuccess) return;
  throw TestFailure(failure_line(
      "device", std::string(catGetErrorString(result)) + " / " + catGetLastErrorMessage(), where));
}

int use_device(int ordinal) {
  if (catSetDevice(ordinal) == catSuccess) return ordinal;
  int count = 0;
  check_device(catGetDeviceCount(&count));
  const int shared = ordinal % count;
  check_device(catSetDevice(shared));
  return shared;
}

Stream::Stream(int device, bool use_default) : device_(device) {
  if (use_default) return;
  check_device(catSetDevice(device_));
  check_device(catStreamCreateWithFlags(&stream_, catStreamNonBlocking));
}

Stream::~Stream() {
  if (stream_ != nullptr) catStreamDestroy(stream_);
}

void Stream::enter_device() const {
  if (stream_ == nullptr) check_device(catSetDevice(device_));
}

void Stream::synchronize() const {
  enter_device();
  check_device(catStreamSynchronize(stream_));
}

bool Stream::idle() const {
  enter_device();
  const catError_t state = catStreamQuery(stream_);
  if (state == catErrorNotReady) return false;
  check_device(state);
  return true;
}

Event::Event() { check_device(catEventCreate(&event_)); }

Event::~Event() {
  if (event_ != nullptr) catEventDestroy(event_);
}

void Event::record(const Stream& stream) const {
  stream.enter_device();
  check_device(catEventRecord(event_, stream.handle()));
}

double Event::microseconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check_device(catEventElapsedTime(&milliseconds, earlier.event_, event_));
  return static_cast<double>(milliseconds) * 1e3;
}

}  // namespace catenary::perf
