#include "tests/api/collective_cases.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "catenary/device.h"
#include "tests/support/elements.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa5;
// How many different elements an input has; the pattern repeats after them.
constexpr std::size_t kPeriod = 5;

// Small enough that 8 ranks' sums and products stay exact in every type, 8-bit floats included.
double input_value(int rank, std::size_t index, int op) {
  const std::size_t phase = (static_cast<std::size_t>(rank) + index % kPeriod) % kPeriod;
  if (op == ncclProd) return phase == 0 && rank < 3 ? 2 : 1;
  return phase < 2 ? 1 : 0;
}

double expected_value(int nranks, std::size_t index, int op) {
  double result = op == ncclProd ? 1 : op == ncclMin ? 1e9 : 0;
  for (int rank = 0; rank < nranks; ++rank) {
    const double value = input_value(rank, index, op);
    switch (op) {
      case ncclProd: result *= value; break;
      case ncclMax: result = value > result ? value : result; break;
      case ncclMin: result = value < result ? value : result; break;
      case kPreMulSum: result += value * (rank % 2 + 1); break;
      default: result += value; break;
    }
  }
  return result;
}

// Averages are exact only where 1/n is: elsewhere floats are left to the tests of rounding.
bool is_exact(int nranks, ncclDataType_t type, int op) {
  return op != ncclAvg || !is_float(type) || (nranks & (nranks - 1)) == 0;
}

// Memory that peers may read where it lies, where the test is about that.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes) : bytes_(bytes) {
    static const char* const kind = std::getenv("CATENARY_TEST_MEMORY");
    if (kind != nullptr && std::strcmp(kind, "mapped") == 0) {
      require_success(ncclMemAlloc(&mapped_, bytes), "ncclMemAlloc");
    } else {
      owned_.resize(bytes);
    }
    std::memset(data(), kGuard, bytes);
  }
  ~Bytes() {
    if (mapped_ != nullptr) ncclMemFree(mapped_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  unsigned char* data() {
    return mapped_ != nullptr ? static_cast<unsigned char*>(mapped_) : owned_.data();
  }
  const unsigned char* data() const { return const_cast<Bytes*>(this)->data(); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::vector<unsigned char> owned_;
  void* mapped_ = nullptr;
};

class Buffer {
 public:
  Buffer(ncclDataType_t type, std::size_t count)
      : type_(type), count_(count), bytes_(count * element_bytes(type) + 2 * kGuardBytes) {}

  void* at(std::size_t index) { return bytes_.data() + kGuardBytes + index * element_bytes(type_); }

  // Writes value(i), which repeats after kPeriod elements, to `count` elements from `first`.
  void fill(std::size_t first, std::size_t count, const std::function<double(std::size_t)>& value) {
    for (std::size_t i = 0; i < count && i < kPeriod; ++i)
      put_element(at(first + i), type_, value(i));
    const std::size_t width = element_bytes(type_);
    auto* base = static_cast<unsigned char*>(at(first));
    std::size_t repeated = 0;
    for (std::size_t done = kPeriod * width; done < count * width; done += repeated) {
      repeated = std::min(done, count * width - done);
      std::memcpy(base + done, base, repeated);
    }
  }

  bool operator==(const Buffer& other) const {
    return std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
  }

  std::size_t first_difference(const Buffer& other) const {
    std::size_t i = 0;
    while (i < bytes_.size() && bytes_.data()[i] == other.bytes_.data()[i]) ++i;
    return i < kGuardBytes ? 0 : (i - kGuardBytes) / element_bytes(type_);
  }

 private:
  ncclDataType_t type_;
  std::size_t count_;
  Bytes bytes_;
};

void require_equal(const Buffer& got, const Buffer& expected, const std::string& what) {
  if (got == expected) return;
  throw Failure{what + ": first wrong element " + std::to_string(got.first_difference(expected))};
}

struct Op {
  ncclRedOp_t value;
  ncclComm_t comm = nullptr;
  Op(int op, int rank, ncclDataType_t type, ncclComm_t in) : value(static_cast<ncclRedOp_t>(op)) {
    if (op != kPreMulSum) return;
    alignas(8) char scalar[8];
    put_element(scalar, type, rank % 2 + 1);
    require_success(ncclRedOpCreatePreMulSum(&value, scalar, type, ncclScalarHostImmediate, in),
                    "create op");
    comm = in;
  }
  ~Op() {
    if (comm != nullptr) ncclRedOpDestroy(value, comm);
  }
};

class TestStream {
 public:
  TestStream() { require(catStreamCreate(&stream_) == catSuccess, "catStreamCreate"); }
  ~TestStream() { catStreamDestroy(stream_); }
  operator catStream_t() const { return stream_; }
  void finish(const std::string& what) {
    require(catStreamSynchronize(stream_) == catSuccess, what + ": catStreamSynchronize failed");
  }

 private:
  catStream_t stream_ = nullptr;
};

std::string label(const char* name, int nranks, ncclDataType_t type, int op, std::size_t count,
                  bool in_place) {
  return std::string(name) + " ranks " + std::to_string(nranks) + " type " + std::to_string(type) +
         " op " + std::to_string(op) + " count " + std::to_string(count) +
         (in_place ? " in place" : "");
}

void all_reduce_case(int rank, int nranks, ncclComm_t comm, TestStream& stream, ncclDataType_t type,
                     int op, std::size_t count, bool in_place) {
  const std::string what = label("AllReduce", nranks, type, op, count, in_place);
  const auto mine = [&](std::size_t i) { return input_value(rank, i, op); };
  Buffer send(type, count);
  Buffer received(type, count);
  Buffer expected(type, count);
  send.fill(0, count, mine);
  if (in_place) received.fill(0, count, mine);
  expected.fill(0, count, [&](std::size_t i) {
    const double sum = expected_value(nranks, i, op);
    if (op != ncclAvg) return sum;
    return is_float(type) ? sum / nranks : static_cast<double>(static_cast<int>(sum) / nranks);
  });
  const Op reduction(op, rank, type, comm);
  require_success(ncclAllReduce(in_place ? received.at(0) : send.at(0), received.at(0), count, type,
                                reduction.value, comm, stream),
                  what);
  stream.finish(what);
  if (is_exact(nranks, type, op)) require_equal(received, expected, what);
}

using Call =
    std::function<ncclResult_t(const void*, void*, std::size_t, ncclDataType_t, catStream_t)>;

struct OtherCase {
  const char* name;
  std::size_t sent_parts;      // parts of `count` elements that this rank gives
  std::size_t received_parts;  // and gets; 0: nothing
  Call call;
  // Part and element of the result as a value.
  std::function<double(std::size_t part, std::size_t index)> expected;
  std::size_t own_part_in_receive;  // where the input lies in place, if it may and this rank can
  bool may_be_in_place = true;
  int op = ncclSum;  // for the label
};

constexpr std::size_t kNotInPlace = static_cast<std::size_t>(-1);

// Element `index` of part `part` of what `rank` gives.
double part_value(int rank, std::size_t part, std::size_t index) {
  return input_value(rank + 2 * static_cast<int>(part), index, ncclSum);
}

void other_case(const OtherCase& test, int rank, int nranks, TestStream& stream,
                ncclDataType_t type, std::size_t count, bool wants_in_place) {
  if (wants_in_place && !test.may_be_in_place) return;
  const bool in_place = wants_in_place && test.own_part_in_receive != kNotInPlace;
  const std::string what = label(test.name, nranks, type, test.op, count, in_place);
  Buffer send(type, count * test.sent_parts);
  Buffer received(type, count * test.received_parts);
  Buffer expected(type, count * test.received_parts);
  for (std::size_t part = 0; part < test.sent_parts; ++part) {
    const auto value = [&](std::size_t i) { return part_value(rank, part, i); };
    send.fill(part * count, count, value);
    if (in_place) received.fill((test.own_part_in_receive + part) * count, count, value);
  }
  for (std::size_t part = 0; part < test.received_parts; ++part) {
    expected.fill(part * count, count, [&](std::size_t i) { return test.expected(part, i); });
  }
  void* const from = in_place ? received.at(test.own_part_in_receive * count) : send.at(0);
  require_success(test.call(from, received.at(0), count, type, stream), what);
  stream.finish(what);
  require_equal(received, expected, what);
}

// What ranks give in part `part`, reduced.
double reduced_parts(int nranks, std::size_t part, std::size_t index, int op, bool is_float) {
  double sum = 0;
  for (int peer = 0; peer < nranks; ++peer) {
    sum += part_value(peer, part, index) * (op == kPreMulSum ? peer % 2 + 1 : 1);
  }
  if (op != ncclAvg) return sum;
  return is_float ? sum / nranks : static_cast<double>(static_cast<int>(sum) / nranks);
}

// Those that reduce, with the operations that treat inputs or results in a way of their own.
std::vector<OtherCase> scaled_cases(int rank, int nranks, ncclComm_t comm, int root, int op,
                                    ncclDataType_t type) {
  const auto n = static_cast<std::size_t>(nranks);
  const auto r = static_cast<std::size_t>(rank);
  const bool at_root = rank == root;
  const auto reduced = [=](std::size_t part, std::size_t i) {
    return reduced_parts(nranks, part, i, op, is_float(type));
  };
  return {{"ReduceScatter", n, 1,
           [=](auto s, auto d, auto c, auto t, auto st) {
             const Op reduction(op, rank, t, comm);
             return ncclReduceScatter(s, d, c, t, reduction.value, comm, st);
           },
           [=](std::size_t, std::size_t i) { return reduced(r, i); }, kNotInPlace, false, op},
          {"Reduce", 1, at_root ? 1u : 0u,
           [=](auto s, auto d, auto c, auto t, auto st) {
             const Op reduction(op, rank, t, comm);
             return ncclReduce(s, d, c, t, reduction.value, root, comm, st);
           },
           [=](std::size_t, std::size_t i) { return reduced(0, i); }, at_root ? 0 : kNotInPlace,
           true, op}};
}

// The result replaces the rank's own part of what it gives, and nothing else.
void reduce_scatter_in_place(int rank, int nranks, ncclComm_t comm, TestStream& stream,
                             ncclDataType_t type, std::size_t count) {
  const std::string what = label("ReduceScatter", nranks, type, ncclSum, count, true);
  const auto n = static_cast<std::size_t>(nranks);
  const auto r = static_cast<std::size_t>(rank);
  Buffer data(type, count * n);
  Buffer expected(type, count);
  for (std::size_t part = 0; part < n; ++part) {
    data.fill(part * count, count, [&](std::size_t i) { return part_value(rank, part, i); });
  }
  expected.fill(0, count, [&](std::size_t i) {
    return reduced_parts(nranks, r, i, ncclSum, is_float(type));
  });
  require_success(
      ncclReduceScatter(data.at(0), data.at(r * count), count, type, ncclSum, comm, stream), what);
  stream.finish(what);
  require(std::memcmp(data.at(r * count), expected.at(0), count * element_bytes(type)) == 0, what);
}

std::vector<OtherCase> other_cases(int rank, int nranks, ncclComm_t comm, int root) {
  const auto n = static_cast<std::size_t>(nranks);
  const auto r = static_cast<std::size_t>(rank);
  const bool at_root = rank == root;
  const auto sum_of_part = [nranks](std::size_t part, std::size_t i) {
    double sum = 0;
    for (int peer = 0; peer < nranks; ++peer) sum += part_value(peer, part, i);
    return sum;
  };
  return {
      {"AllGather", 1, n,
       [=](auto s, auto d, auto c, auto t, auto st) { return ncclAllGather(s, d, c, t, comm, st); },
       [](std::size_t part, std::size_t i) { return part_value(static_cast<int>(part), 0, i); }, r},
      {"ReduceScatter", n, 1,
       [=](auto s, auto d, auto c, auto t, auto st) {
         return ncclReduceScatter(s, d, c, t, ncclSum, comm, st);
       },
       [=](std::size_t, std::size_t i) { return sum_of_part(r, i); }, kNotInPlace, false},
      {"Broadcast", 1, 1,
       [=](auto s, auto d, auto c, auto t, auto st) {
         return ncclBroadcast(s, d, c, t, root, comm, st);
       },
       [=](std::size_t, std::size_t i) { return part_value(root, 0, i); }, 0},
      {"Reduce", 1, at_root ? 1u : 0u,
       [=](auto s, auto d, auto c, auto t, auto st) {
         return ncclReduce(s, d, c, t, ncclSum, root, comm, st);
       },
       [=](std::size_t, std::size_t i) { return sum_of_part(0, i); }, at_root ? 0 : kNotInPlace},
      {"AlltoAll", n, n,
       [=](auto s, auto d, auto c, auto t, auto st) { return ncclAlltoAll(s, d, c, t, comm, st); },
       [=](std::size_t part, std::size_t i) { return part_value(static_cast<int>(part), r, i); },
       kNotInPlace, false},
      {"Gather", 1, at_root ? n : 0u,
       [=](auto s, auto d, auto c, auto t, auto st) {
         return ncclGather(s, d, c, t, root, comm, st);
       },
       [](std::size_t part, std::size_t i) { return part_value(static_cast<int>(part), 0, i); },
       kNotInPlace, false},
      {"Scatter", at_root ? n : 0u, 1,
       [=](auto s, auto d, auto c, auto t, auto st) {
         return ncclScatter(s, d, c, t, root, comm, st);
       },
       [=](std::size_t, std::size_t i) { return part_value(root, r, i); }, kNotInPlace, false},
  };
}

// Sums large enough that dividing a part of one, or one twice, shows.
void large_average(int rank, int nranks, ncclComm_t comm, TestStream& stream, std::size_t count) {
  const std::string what = label("AllReduce", nranks, ncclInt32, ncclAvg, count, true);
  const auto value = [](int of_rank, std::size_t i) {
    return (of_rank + 1) * 1000 + static_cast<std::int32_t>(i % kPeriod);
  };
  std::vector<std::int32_t> data(count);
  std::vector<std::int32_t> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = value(rank, i);
    for (int peer = 0; peer < nranks; ++peer) expected[i] += value(peer, i);
    expected[i] /= nranks;
  }
  require_success(ncclAllReduce(data.data(), data.data(), count, ncclInt32, ncclAvg, comm, stream),
                  what);
  stream.finish(what);
  require(data == expected, what + " of large integers");
}

}  // namespace

void check_all_reduce(int rank, int nranks, ncclComm_t comm,
                      const std::vector<std::size_t>& counts) {
  TestStream stream;
  for (const std::size_t count : counts) {
    for (int type = 0; type < ncclNumTypes; ++type) {
      for (int op = 0; op <= kPreMulSum; ++op) {
        for (const bool in_place : {false, true}) {
          all_reduce_case(rank, nranks, comm, stream, static_cast<ncclDataType_t>(type), op, count,
                          in_place);
        }
      }
    }
  }
}

void check_other_collectives(int rank, int nranks, ncclComm_t comm,
                             const std::vector<std::size_t>& counts) {
  TestStream stream;
  const int root = nranks / 2;
  for (const OtherCase& test : other_cases(rank, nranks, comm, root)) {
    for (const std::size_t count : counts) {
      for (int type = 0; type < ncclNumTypes; ++type) {
        for (const bool in_place : {false, true}) {
          other_case(test, rank, nranks, stream, static_cast<ncclDataType_t>(type), count,
                     in_place);
        }
      }
    }
  }
}

void check_scaled_reductions(int rank, int nranks, ncclComm_t comm,
                             const std::vector<std::size_t>& counts) {
  TestStream stream;
  const int root = nranks - 1;
  for (const std::size_t count : counts) large_average(rank, nranks, comm, stream, count);
  for (int t = 0; t < ncclNumTypes; ++t) {
    const auto type = static_cast<ncclDataType_t>(t);
    for (const std::size_t count : counts) {
      reduce_scatter_in_place(rank, nranks, comm, stream, type, count);
      for (const int op : {static_cast<int>(ncclAvg), kPreMulSum}) {
        if (!is_exact(nranks, type, op)) continue;
        for (const OtherCase& test : scaled_cases(rank, nranks, comm, root, op, type)) {
          for (const bool in_place : {false, true}) {
            other_case(test, rank, nranks, stream, type, count, in_place);
          }
        }
      }
    }
  }
}

void check_send_recv(int rank, int nranks, ncclComm_t comm,
                     const std::vector<std::size_t>& counts) {
  TestStream stream;
  const int next = (rank + 1) % nranks;
  const int previous = (rank + nranks - 1) % nranks;
  for (const std::size_t count : counts) {
    for (int t = 0; t < ncclNumTypes; ++t) {
      const auto type = static_cast<ncclDataType_t>(t);
      const std::string what = label("SendRecv", nranks, type, 0, count, false);
      Buffer send(type, count);
      Buffer received(type, count);
      Buffer expected(type, count);
      send.fill(0, count, [&](std::size_t i) { return part_value(rank, 0, i); });
      expected.fill(0, count, [&](std::size_t i) { return part_value(previous, 0, i); });
      require_success(ncclGroupStart(), what);
      require_success(ncclSend(send.at(0), count, type, next, comm, stream), what);
      require_success(ncclRecv(received.at(0), count, type, previous, comm, stream), what);
      require_success(ncclGroupEnd(), what);
      stream.finish(what);
      require_equal(received, expected, what);
    }
  }
}

}  // namespace catenary::testing
