#include "marks.h"

#include <regex>

#include "elements.h"

namespace catenary_torch {
namespace {

// From the lowest bit on; each field holds 0 for nothing, or one more than its value.
constexpr int kCallBits = 6;
constexpr int kTypeBits = 8;
constexpr int kReductionBits = 4;
constexpr int kRootBits = 32 - kCallBits - kTypeBits - kReductionBits;

// Puts a field below what is there.
void push(std::uint32_t& mark, int bits, std::optional<int> value) {
  const std::uint32_t field = value ? static_cast<std::uint32_t>(*value) + 1 : 0;
  mark = mark << bits | (field & ((1u << bits) - 1));
}

std::optional<int> pop(std::uint32_t& mark, int bits) {
  const std::uint32_t field = mark & ((1u << bits) - 1);
  mark >>= bits;
  return field == 0 ? std::nullopt : std::optional(static_cast<int>(field) - 1);
}

std::string words_of(std::uint32_t mark) {
  const std::optional<int> call = pop(mark, kCallBits);
  const std::optional<int> type = pop(mark, kTypeBits);
  const std::optional<int> reduction = pop(mark, kReductionBits);
  const std::optional<int> root = pop(mark, kRootBits);
  std::string text = "in torch ";
  // It may have come from a peer, and a peer may be broken.
  const bool is_call =
      call && *call <= static_cast<int>(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED);
  text += is_call ? c10d::opTypeToString(static_cast<c10d::OpType>(*call)) : "no known call";
  if (type && *type < static_cast<int>(at::ScalarType::NumOptions))
    text += std::string(" of ") + at::toString(static_cast<at::ScalarType>(*type));
  if (reduction) {
    text += std::string(" by ") + name_of(static_cast<c10d::ReduceOp::RedOpType>(*reduction));
  }
  if (root) text += " with root " + std::to_string(*root);
  return text;
}

}  // namespace

std::uint32_t mark_of(const Operation& operation) {
  const auto number = [](const auto& value) {
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  std::uint32_t mark = 0;
  push(mark, kRootBits, operation.root);
  push(mark, kReductionBits, number(operation.reduction));
  push(mark, kTypeBits, number(operation.element));
  push(mark, kCallBits, static_cast<int>(operation.type));
  return mark;
}

std::string with_marks_in_words(const std::string& message) {
  static const std::regex pattern("mark 0x([0-9a-f]{8})");
  std::string told;
  auto rest = message.cbegin();
  for (std::sregex_iterator found(message.begin(), message.end(), pattern), end; found != end;
       ++found) {
    told.append(rest, (*found)[0].first);
    told += words_of(static_cast<std::uint32_t>(std::stoul((*found)[1].str(), nullptr, 16)));
    rest = (*found)[0].second;
  }
  return told.append(rest, message.cend());
}

}  // namespace catenary_torch
