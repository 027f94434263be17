#include "src/engine/descriptor.h"

#include <algorithm>

namespace catenary {

std::string_view name_of(Reduction reduction) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "avg", "premulsum", "none"};
  return kNames[static_cast<int>(reduction)];
}

std::string describe(const Descriptor& descriptor) {
  // It may have come from a peer, and a peer may be broken.
  const bool known = static_cast<int>(descriptor.kind) < kCollectiveCount &&
                     static_cast<int>(descriptor.type) < kDataTypeCount &&
                     descriptor.reduction <= Reduction::kNone;
  if (!known) return "an operation that this version does not know";
  std::string text =
      format("%s number %u (count %llu, %s", std::string(name_of(descriptor.kind)).c_str(),
             descriptor.sequence, static_cast<unsigned long long>(descriptor.count),
             std::string(name_of(descriptor.type)).c_str());
  if (descriptor.reduction != Reduction::kNone)
    text += ", " + std::string(name_of(descriptor.reduction));
  switch (descriptor.kind) {
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kGather:
    case Collective::kScatter: text += format(", root %d", descriptor.root); break;
    case Collective::kAllToAllV:
      if (descriptor.root >= 0) text += format(", from rank %d", descriptor.root);
      break;
    case Collective::kAllGatherV:
    case Collective::kReduceScatterV:
      text += format(", in parts with digest %08x", static_cast<std::uint32_t>(descriptor.root));
      break;
    default: break;
  }
  if (descriptor.mark != 0) text += format(", mark 0x%08x", descriptor.mark);
  return text + ")";
}

Descriptor opening_of(const Descriptor& all_to_all_v, int sender, std::uint64_t count) {
  Descriptor opening = all_to_all_v;
  opening.root = sender;
  opening.count = count;
  return opening;
}

Descriptor whole(const Descriptor& descriptor) {
  return descriptor.kind == Collective::kAllToAllV ? opening_of(descriptor, -1, 0) : descriptor;
}

// FNV-1a, by words.
std::int32_t digest_of(const std::vector<Range>& parts) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (const Range& part : parts) digest = (digest ^ part.count) * 0x100000001b3u;
  return static_cast<std::int32_t>(digest ^ digest >> 32);
}

namespace {

// What to do about it, by how far the two operations are apart.
const char* remedy_of(const Descriptor& mine, const Descriptor& theirs) {
  Descriptor alike = theirs;
  alike.algorithm = mine.algorithm;
  if (mine != theirs && mine == alike)
    return "they chose different algorithms for it: set CATENARY_ALGO and NCCL_ALGO alike for all "
           "ranks";
  // Whose end it is says what a message is called.
  const bool are_messages = is_point_to_point(mine.kind) && is_point_to_point(theirs.kind);
  if (mine.sequence != theirs.sequence || (mine.kind != theirs.kind && !are_messages))
    return "every rank must issue the same operations in the same order";
  const bool are_exchanged = are_messages || mine.kind == Collective::kAllToAllV;
  if (are_exchanged && mine.mark == theirs.mark)
    return "what one rank sends another must expect, with the same count and type";
  return "count, type, reduction, root, parts and mark of an operation must be alike on all ranks";
}

}  // namespace

Error disagreement(int rank, const Descriptor& mine, int peer, const Descriptor& theirs) {
  // Of two numbers, the lower one is of something that only one of them took part in.
  const std::string since =
      mine.sequence == theirs.sequence
          ? ""
          : format(" since number %u at the latest", std::min(mine.sequence, theirs.sequence));
  return {ErrorCode::kInvalidUsage,
          format("ranks do not agree%s: rank %d has issued %s, but rank %d has issued %s; %s",
                 since.c_str(), rank, describe(mine).c_str(), peer, describe(theirs).c_str(),
                 remedy_of(mine, theirs))};
}

}  // namespace catenary
