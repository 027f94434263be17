// The loops that every instruction set shares, and the table made of them.
//
// Included by the reduce_<isa>.cc files only. Everything is in an anonymous namespace, and nothing
// of the standard library that would emit code is called: each file is compiled with its own
// instruction set, and an inline function shared with other files could be the copy that the linker
// keeps for all of them.
//
// An instruction set provides, for each DataType, an Element<type>:
//   Raw     a register (or part of one) of elements as they lie in memory
//   Value   the same elements as they are computed with
//   kElementBytes, and kUnroll, how many Raws an iteration takes (but see goes_by_line())
//   load, store                          a whole Raw, any alignment
//   load_tail, store_tail(.., bytes)     the first bytes of one; absent if Raw is a single element
//   stream, fence                        stores past the caches to an aligned place, and their end;
//                                        absent if there are none
//   splat(Scalar) -> Raw, decode(Raw) -> Value, encode(Value) -> Raw
//   add, mul, max, min(Value, Value) -> Value
//   Integer the C type, for integers only
//   kAheadBytes  how far ahead operands are fetched; absent where so little is computed that the
//                processor comes to the loads of enough lines by itself
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "src/base/size_literals.h"
#include "src/base/types.h"
#include "src/kernels/table.h"

namespace catenary::kernels {
namespace {

// What elements need that are computed as something else: while a line of them is worked on, the
// processor does not get far enough ahead to have many of the peer's lines under way.
struct Converted {
  static constexpr std::size_t kAheadBytes = 1_KB;
};

// A Value of two registers of small floats, computed with one Arithmetic.
template <class Arithmetic>
struct Paired : Converted {
  struct Value {
    typename Arithmetic::Value first, second;
  };
  [[gnu::always_inline]] static Value add(Value a, Value b) {
    return {Arithmetic::add(a.first, b.first), Arithmetic::add(a.second, b.second)};
  }
  [[gnu::always_inline]] static Value mul(Value a, Value b) {
    return {Arithmetic::mul(a.first, b.first), Arithmetic::mul(a.second, b.second)};
  }
  [[gnu::always_inline]] static Value max(Value a, Value b) {
    return {Arithmetic::max(a.first, b.first), Arithmetic::max(a.second, b.second)};
  }
  [[gnu::always_inline]] static Value min(Value a, Value b) {
    return {Arithmetic::min(a.first, b.first), Arithmetic::min(a.second, b.second)};
  }
};

template <class Element, int kParts>
struct Block {
  typename Element::Value part[kParts];
};

constexpr std::size_t kLineBytes = 64;

// Reads the block at one offset of any operand, and fetches lines as far ahead as it is told.
template <class Element, int kParts, std::size_t kAheadBytes = 0>
struct WholeAt {
  std::size_t offset;
  [[gnu::always_inline]] Block<Element, kParts> operator()(const void* base) const {
    const auto* from = static_cast<const std::byte*>(base) + offset;
    if constexpr (kAheadBytes > 0) {
      for (std::size_t line = 0; line < kParts * sizeof(typename Element::Raw);
           line += kLineBytes) {
        __builtin_prefetch(from + kAheadBytes + line);
      }
    }
    Block<Element, kParts> block;
    for (int i = 0; i < kParts; ++i) {
      block.part[i] = Element::decode(
          Element::load(from + static_cast<std::size_t>(i) * sizeof(typename Element::Raw)));
    }
    return block;
  }
};

template <class Element>
struct TailAt {
  std::size_t offset;
  std::size_t bytes;
  [[gnu::always_inline]] Block<Element, 1> operator()(const void* base) const {
    const auto* from = static_cast<const std::byte*>(base) + offset;
    return {{Element::decode(Element::load_tail(from, bytes))}};
  }
};

template <class Element, ReduceOp kOp>
[[gnu::always_inline]] inline typename Element::Value combine(typename Element::Value a,
                                                              typename Element::Value b) {
  if constexpr (kOp == ReduceOp::kSum) return Element::add(a, b);
  if constexpr (kOp == ReduceOp::kProd) return Element::mul(a, b);
  if constexpr (kOp == ReduceOp::kMax) return Element::max(a, b);
  if constexpr (kOp == ReduceOp::kMin) return Element::min(a, b);
}

template <ReduceOp kOp, class Element, int kParts>
[[gnu::always_inline]] inline Block<Element, kParts> combine(Block<Element, kParts> a,
                                                             Block<Element, kParts> b) {
  for (int i = 0; i < kParts; ++i) a.part[i] = combine<Element, kOp>(a.part[i], b.part[i]);
  return a;
}

template <class Element, int kParts>
[[gnu::always_inline]] inline Block<Element, kParts> multiply(Block<Element, kParts> block,
                                                              typename Element::Value factor) {
  for (int i = 0; i < kParts; ++i) block.part[i] = Element::mul(factor, block.part[i]);
  return block;
}

template <class Element, int kParts>
[[gnu::always_inline]] inline Block<Element, kParts> rounded(Block<Element, kParts> block) {
  for (int i = 0; i < kParts; ++i) block.part[i] = Element::decode(Element::encode(block.part[i]));
  return block;
}

enum class Stores { kCached, kStreaming };

// Where results go.
template <class Element, Stores kStores>
struct Out {
  using Raw = typename Element::Raw;
  static constexpr bool kStreams = kStores == Stores::kStreaming;
  std::byte* to;
  explicit Out(void* out) : to(static_cast<std::byte*>(out)) {}
  [[gnu::always_inline]] void put(std::size_t offset, Raw raw) const {
    if constexpr (kStores == Stores::kStreaming) {
      Element::stream(to + offset, raw);
    } else {
      Element::store(to + offset, raw);
    }
  }
  [[gnu::always_inline]] void put_cached(std::size_t offset, Raw raw) const {
    Element::store(to + offset, raw);
  }
  [[gnu::always_inline]] void put_tail(std::size_t offset, Raw raw, std::size_t bytes) const {
    Element::store_tail(to + offset, raw, bytes);
  }
};

// The same result in two places.
template <class Element, Stores kFirst, Stores kSecond>
struct TwoOuts {
  using Raw = typename Element::Raw;
  static constexpr bool kStreams = kFirst == Stores::kStreaming || kSecond == Stores::kStreaming;
  Out<Element, kFirst> first;
  Out<Element, kSecond> second;
  TwoOuts(void* out, void* twin) : first(out), second(twin) {}
  [[gnu::always_inline]] void put(std::size_t offset, Raw raw) const {
    first.put(offset, raw);
    second.put(offset, raw);
  }
  [[gnu::always_inline]] void put_cached(std::size_t offset, Raw raw) const {
    first.put_cached(offset, raw);
    second.put_cached(offset, raw);
  }
  [[gnu::always_inline]] void put_tail(std::size_t offset, Raw raw, std::size_t bytes) const {
    first.put_tail(offset, raw, bytes);
    second.put_tail(offset, raw, bytes);
  }
};

template <class Element>
constexpr std::size_t ahead_bytes() {
  if constexpr (requires { Element::kAheadBytes; }) return Element::kAheadBytes;
  return 0;
}

// Puts what `compute` makes of each block from `offset` bytes on. It is given a reader of the
// operands at that block, and a block is stored only after all of it is read, so that what `out`
// stands for may be an operand.
template <class Element, int kUnroll = Element::kUnroll,
          std::size_t kAhead = ahead_bytes<Element>(), class Outs, class Compute>
[[gnu::always_inline]] inline void for_each_block(Outs out, std::size_t count, Compute compute,
                                                  std::size_t offset = 0) {
  constexpr std::size_t kRawBytes = sizeof(typename Element::Raw);
  const std::size_t bytes = count * Element::kElementBytes;
  const auto store_block = [&](auto at) __attribute__((always_inline)) {
    const Block<Element, kUnroll> block = compute(at);
    for (int i = 0; i < kUnroll; ++i) {
      out.put(offset + static_cast<std::size_t>(i) * kRawBytes, Element::encode(block.part[i]));
    }
  };
  // Not past the end: what lies there may be another core's, about to be written.
  if constexpr (kAhead > 0) {
    for (; offset + kUnroll * kRawBytes + kAhead <= bytes; offset += kUnroll * kRawBytes) {
      store_block(WholeAt<Element, kUnroll, kAhead>{offset});
    }
  }
  for (; offset + kUnroll * kRawBytes <= bytes; offset += kUnroll * kRawBytes) {
    store_block(WholeAt<Element, kUnroll>{offset});
  }
  if constexpr (kUnroll > 1) {
    for (; offset + kRawBytes <= bytes; offset += kRawBytes) {
      out.put_cached(offset, Element::encode(compute(WholeAt<Element, 1>{offset}).part[0]));
    }
  }
  if constexpr (kRawBytes > Element::kElementBytes) {
    if (offset == bytes) return;
    const Block<Element, 1> block = compute(TailAt<Element>{offset, bytes - offset});
    out.put_tail(offset, Element::encode(block.part[0]), bytes - offset);
  }
}

template <class Element>
using Cached = Out<Element, Stores::kCached>;

// Whether blocks of two operands are as long as a line. Where results go past the caches, operands
// come from beyond them, and a processor fetches ahead what is read in its order, in which
// compilers do not load several lines. It does that better by itself than if it is told. But of
// 8-bit floats a line takes so long to compute that others are to be computed meanwhile.
template <class Element, class Outs>
constexpr bool goes_by_line() {
  const bool is_slow = Element::kElementBytes == 1 && ahead_bytes<Element>() > 0;
  return Outs::kStreams && !is_slow;
}

template <class Element, ReduceOp kOp, class Outs>
[[gnu::always_inline]] inline void reduce_to(Outs out, const void* a, const void* b,
                                             std::size_t count, std::size_t offset = 0) {
  constexpr bool kByLine = goes_by_line<Element, Outs>();
  constexpr std::size_t kRawBytes = sizeof(typename Element::Raw);
  constexpr int kRawsOfLine = kRawBytes < kLineBytes ? kLineBytes / kRawBytes : 1;
  for_each_block<Element, kByLine ? kRawsOfLine : Element::kUnroll,
                 kByLine ? 0 : ahead_bytes<Element>()>(
      out,
      count, [=](auto at) __attribute__((always_inline)) { return combine<kOp>(at(a), at(b)); },
      offset);
}

template <class Element, ReduceOp kOp>
void reduce(void* out, const void* a, const void* b, std::size_t count) {
  reduce_to<Element, kOp>(Cached<Element>(out), a, b, count);
}

// How many elements come before the first one that a streaming store can go to, `count` if none
// can.
template <class Element>
[[gnu::always_inline]] inline std::size_t before_streams(const void* out, std::size_t count) {
  const std::size_t bytes = -reinterpret_cast<std::uintptr_t>(out) % sizeof(typename Element::Raw);
  const std::size_t elements = bytes / Element::kElementBytes;
  return bytes % Element::kElementBytes == 0 && elements < count ? elements : count;
}

template <class Element, ReduceOp kOp>
void reduce_twice(void* out, void* twin, const void* a, const void* b, std::size_t count,
                  TwinStores stores) {
  constexpr Stores kCached = Stores::kCached;
  std::size_t head = count;
  if constexpr (requires { &Element::stream; }) {
    if (stores != TwinStores::kCached) head = before_streams<Element>(twin, count);
  }
  reduce_to<Element, kOp>(TwoOuts<Element, kCached, kCached>(out, twin), a, b, head);
  if constexpr (requires { &Element::stream; }) {
    if (head == count) return;
    constexpr Stores kStreaming = Stores::kStreaming;
    const std::size_t offset = head * Element::kElementBytes;
    const bool are_alike =
        (reinterpret_cast<std::uintptr_t>(out) - reinterpret_cast<std::uintptr_t>(twin)) %
            sizeof(typename Element::Raw) ==
        0;
    if (stores == TwinStores::kBothStreaming && are_alike) {
      reduce_to<Element, kOp>(TwoOuts<Element, kStreaming, kStreaming>(out, twin), a, b, count,
                              offset);
    } else {
      reduce_to<Element, kOp>(TwoOuts<Element, kCached, kStreaming>(out, twin), a, b, count,
                              offset);
    }
    Element::fence();
  }
}

template <class Element, ReduceOp kOp>
void reduce_scaled(void* out, const void* a, const void* b, Scalar scale, std::size_t count) {
  const typename Element::Value factor = Element::decode(Element::splat(scale));
  for_each_block<Element>(
      Cached<Element>(out), count, [=](auto at) __attribute__((always_inline)) {
        return combine<kOp>(at(a), rounded(multiply(at(b), factor)));
      });
}

template <class Element, ReduceOp kOp, Stores kStores = Stores::kCached>
[[gnu::always_inline]] inline void fold_from(std::size_t offset, void* out,
                                             const void* const* sources, int nsources,
                                             std::size_t count) {
  const auto compute = [=](auto at) __attribute__((always_inline)) {
    auto block = at(sources[0]);
    for (int i = 1; i < nsources; ++i) block = combine<kOp>(block, at(sources[i]));
    return block;
  };
  for_each_block<Element>(Out<Element, kStores>(out), count, compute, offset);
}

template <class Element, ReduceOp kOp>
void fold(void* out, const void* const* sources, int nsources, std::size_t count) {
  fold_from<Element, kOp>(0, out, sources, nsources, count);
}

template <class Element, ReduceOp kOp>
void fold_streaming(void* out, const void* const* sources, int nsources, std::size_t count) {
  const std::size_t head = before_streams<Element>(out, count);
  fold<Element, kOp>(out, sources, nsources, head);
  if (head == count) return;
  const std::size_t offset = head * Element::kElementBytes;
  if (nsources == 2) {
    const Out<Element, Stores::kStreaming> past_caches(out);
    reduce_to<Element, kOp>(past_caches, sources[0], sources[1], count, offset);
  } else {
    fold_from<Element, kOp, Stores::kStreaming>(offset, out, sources, nsources, count);
  }
  Element::fence();
}

template <class Element, ReduceOp kOp>
constexpr auto fold_streaming_kernel() {
  if constexpr (requires { &Element::stream; }) {
    return &fold_streaming<Element, kOp>;
  } else {
    return &fold<Element, kOp>;
  }
}

template <class Element>
void scale(void* out, const void* in, Scalar scale, std::size_t count) {
  const typename Element::Value factor = Element::decode(Element::splat(scale));
  for_each_block<Element>(
      Cached<Element>(out),
      count, [=](auto at) __attribute__((always_inline)) { return multiply(at(in), factor); });
}

// The compiler vectorizes this one. Up to 32 bits the quotient is taken in floating point, which is
// exact after truncation: a quotient that is no integer is farther from one than rounding moves it.
template <class T>
void divide(void* out, const void* in, std::int64_t divisor, std::size_t count) {
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  for (std::size_t offset = 0; offset < count * sizeof(T); offset += sizeof(T)) {
    T value;
    std::memcpy(&value, from + offset, sizeof(T));
    if constexpr (sizeof(T) == 1) {
      value = static_cast<T>(
          static_cast<std::int32_t>(static_cast<float>(value) / static_cast<float>(divisor)));
    } else if constexpr (sizeof(T) == 4) {
      value = static_cast<T>(static_cast<double>(value) / static_cast<double>(divisor));
    } else {
      value = value / static_cast<T>(divisor);
    }
    std::memcpy(to + offset, &value, sizeof(T));
  }
}

template <class Element>
constexpr auto divide_kernel() {
  if constexpr (requires { typename Element::Integer; }) {
    return &divide<typename Element::Integer>;
  } else {
    return &divide_floats;
  }
}

template <template <DataType> class Element, DataType kType>
constexpr void fill_rows(ReduceKernels (&rows)[kReduceOpCount]) {
  using E = Element<kType>;
  const auto row = [&]<ReduceOp kOp>(std::integral_constant<ReduceOp, kOp>) {
    rows[static_cast<int>(kOp)] = {
        &reduce<E, kOp>,   &reduce_twice<E, kOp>,           &reduce_scaled<E, kOp>,
        &fold<E, kOp>,     fold_streaming_kernel<E, kOp>(), &scale<E>,
        divide_kernel<E>()};
  };
  [&]<int... kOps>(std::integer_sequence<int, kOps...>) {
    (row(std::integral_constant<ReduceOp, static_cast<ReduceOp>(kOps)>{}), ...);
  }
  (std::make_integer_sequence<int, kReduceOpCount>{});
}

// All types times all operations: a type without an Element does not compile.
template <template <DataType> class Element>
consteval KernelTable make_table() {
  KernelTable table{};
  [&]<int... kTypes>(std::integer_sequence<int, kTypes...>) {
    (fill_rows<Element, static_cast<DataType>(kTypes)>(table.rows[kTypes]), ...);
  }
  (std::make_integer_sequence<int, kDataTypeCount>{});
  return table;
}

}  // namespace
}  // namespace catenary::kernels
