// oneCCL on host memory, its operations waited for one by one. Intel MPI's mpiexec starts it.
#include <exception>
#include <memory>
#include <oneapi/ccl.hpp>

#include "bench/peers/frame.h"
#include "bench/peers/meet.h"
#include "bench/peers/throwing_main.h"

namespace {

std::unique_ptr<ccl::communicator> communicator;
int my_rank = 0;
int rank_count = 0;

void create(const Plan* plan) {
  my_rank = plan->rank;
  rank_count = plan->ranks;
  ccl::init();
  ccl::kvs::address_type address;
  ccl::shared_ptr_class<ccl::kvs> store;
  if (my_rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  meet_share(address.data(), address.size());
  if (my_rank != 0) store = ccl::create_kvs(address);
  communicator =
      std::make_unique<ccl::communicator>(ccl::create_communicator(rank_count, my_rank, store));
}

void destroy() { communicator.reset(); }

int knows(Operation, Type) { return 1; }

void send_and_receive(void* send, void* recv, std::size_t count, ccl::datatype type) {
  ccl::group_start();
  auto sent = ccl::send(send, count, type, (my_rank + 1) % rank_count, *communicator);
  auto received =
      ccl::recv(recv, count, type, (my_rank + rank_count - 1) % rank_count, *communicator);
  ccl::group_end();
  sent.wait();
  received.wait();
}

void run(const Call* call) {
  constexpr ccl::datatype kTypeIds[kTypes] = {ccl::datatype::float32, ccl::datatype::float16,
                                              ccl::datatype::bfloat16};
  const ccl::datatype type = kTypeIds[call->type];
  const auto& comm = *communicator;
  void* const send = const_cast<void*>(call->send);
  void* const recv = call->recv;
  const std::size_t count = call->count;
  const auto sum = ccl::reduction::sum;
  switch (call->operation) {
    case kAllReduce: ccl::allreduce(send, recv, count, type, sum, comm).wait(); return;
    case kReduceScatter: ccl::reduce_scatter(send, recv, count, type, sum, comm).wait(); return;
    case kAllGather: ccl::allgather(send, recv, count, type, comm).wait(); return;
    case kAlltoall: ccl::alltoall(send, recv, count, type, comm).wait(); return;
    case kBroadcast:
      ccl::broadcast(my_rank == 0 ? send : recv, count, type, 0, comm).wait();
      return;
    case kReduce: ccl::reduce(send, recv, count, type, sum, 0, comm).wait(); return;
    case kSendRecv: return send_and_receive(send, recv, count, type);
    default: fail("an operation that nobody knows");
  }
}

}  // namespace

int main(int argc, char** argv) {
  static const Peer peer = {create, destroy, allocate_private, knows, run, nullptr};
  return run_throwing_worker(argc, argv, peer);
}
