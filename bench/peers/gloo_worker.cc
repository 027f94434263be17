// Gloo, over TCP on the loopback interface, which is what it has within a machine. Where it has
// several algorithms for an all-reduce, --variant halving chooses that of halving and doubling.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bench/peers/frame.h"
#include "bench/peers/meet.h"
#include "bench/peers/throwing_main.h"

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;
bool halving = false;

void create(const Plan* plan) {
  if (plan->scratch == nullptr) fail("Gloo needs --scratch, a folder to meet in");
  halving = plan->variant != nullptr && std::strcmp(plan->variant, "halving") == 0;
  gloo::transport::tcp::attr where("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(plan->scratch);
  context = std::make_shared<gloo::rendezvous::Context>(plan->rank, plan->ranks);
  context->connectFullMesh(store, device);
}

void destroy() { context.reset(); }

int knows(Operation operation, Type type) {
  if (halving) return operation == kAllReduce && type == kFloat;
  return type == kFloat || (type == kHalf && operation == kAllReduce);
}

template <typename T>
void all_reduce(const Call& call) {
  gloo::AllreduceOptions options(context);
  options.setInput(static_cast<T*>(const_cast<void*>(call.send)), call.count);
  options.setOutput(static_cast<T*>(call.recv), call.count);
  options.setReduceFunction(
      [](void* out, const void* a, const void* b, std::size_t n) { gloo::sum<T>(out, a, b, n); });
  gloo::allreduce(options);
}

// Works in place, on data that were there when it was made: the copy belongs to the operation.
void all_reduce_halving(const Call& call) {
  using Algorithm = gloo::AllreduceHalvingDoubling<float>;
  static std::map<std::tuple<void*, std::size_t>, std::unique_ptr<Algorithm>> made;
  float* const data = static_cast<float*>(call.recv);
  auto& algorithm = made[{call.recv, call.count}];
  if (!algorithm) {
    algorithm = std::make_unique<Algorithm>(context, std::vector<float*>{data},
                                            static_cast<int>(call.count));
  }
  std::memcpy(data, call.send, call.count * sizeof(float));
  algorithm->run();
}

// Likewise; there is no other.
void reduce_scatter(const Call& call) {
  using Algorithm = gloo::ReduceScatterHalvingDoubling<float>;
  struct Made {
    std::vector<float> data;
    std::unique_ptr<Algorithm> algorithm;
  };
  static std::map<std::size_t, Made> all_made;
  Made& made = all_made[call.count];
  const auto ranks = static_cast<std::size_t>(context->size);
  if (!made.algorithm) {
    made.data.resize(call.count * ranks);
    made.algorithm = std::make_unique<Algorithm>(
        context, std::vector<float*>{made.data.data()}, static_cast<int>(made.data.size()),
        std::vector<int>(ranks, static_cast<int>(call.count)));
  }
  std::memcpy(made.data.data(), call.send, made.data.size() * sizeof(float));
  made.algorithm->run();
  std::memcpy(call.recv, made.data.data(), call.count * sizeof(float));
}

void send_and_receive(const Call& call) {
  const std::size_t bytes = call.count * sizeof(float);
  auto send = context->createUnboundBuffer(const_cast<void*>(call.send), bytes);
  auto recv = context->createUnboundBuffer(call.recv, bytes);
  const int ranks = context->size;
  recv->recv((context->rank + ranks - 1) % ranks, 1);
  send->send((context->rank + 1) % ranks, 1);
  send->waitSend();
  recv->waitRecv();
}

void reduce(const Call& call) {
  gloo::ReduceOptions options(context);
  options.setInput(static_cast<float*>(const_cast<void*>(call.send)), call.count);
  options.setOutput(static_cast<float*>(call.recv), call.count);
  options.setRoot(0);
  options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
    gloo::sum<float>(out, a, b, n);
  });
  gloo::reduce(options);
}

void run_float(const Call& call) {
  float* const send = static_cast<float*>(const_cast<void*>(call.send));
  float* const recv = static_cast<float*>(call.recv);
  const std::size_t all = call.count * static_cast<std::size_t>(context->size);
  switch (call.operation) {
    case kAllReduce: return halving ? all_reduce_halving(call) : all_reduce<float>(call);
    case kReduceScatter: return reduce_scatter(call);
    case kAllGather: {
      gloo::AllgatherOptions options(context);
      options.setInput(send, call.count);
      options.setOutput(recv, all);
      return gloo::allgather(options);
    }
    case kAlltoall: {
      gloo::AlltoallOptions options(context);
      options.setInput(send, all);
      options.setOutput(recv, all);
      return gloo::alltoall(options);
    }
    case kBroadcast: {
      gloo::BroadcastOptions options(context);
      options.setOutput(context->rank == 0 ? send : recv, call.count);
      options.setRoot(0);
      return gloo::broadcast(options);
    }
    case kReduce: return reduce(call);
    case kSendRecv: return send_and_receive(call);
    default: fail("an operation that nobody knows");
  }
}

void run(const Call* call) {
  if (call->type == kHalf) return all_reduce<gloo::float16>(*call);
  run_float(*call);
}

}  // namespace

int main(int argc, char** argv) {
  static const Peer peer = {create, destroy, allocate_private, knows, run, nullptr};
  return run_throwing_worker(argc, argv, peer);
}
