// Mutations of good messages, from a fixed seed: no parser may crash, read out of bounds or accept
// what does not encode to the very same bytes again.

#include <algorithm>
#include <functional>
#include <random>

#include "src/bootstrap/frame.h"
#include "src/bootstrap/handshake.h"
#include "src/bootstrap/message.h"
#include "src/bootstrap/unique_id.h"
#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

constexpr int kIterations = 100'000;

class Mutator {
 public:
  Bytes mutate(Bytes bytes) {
    for (unsigned changes = below(4) + 1; changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  unsigned below(std::size_t bound) { return static_cast<unsigned>(random_() % bound); }
  std::byte any() {
    constexpr unsigned kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
    return static_cast<std::byte>(below(2) == 0 ? kEdges[below(5)] : below(256));
  }
  void change(Bytes& bytes) {
    if (bytes.empty()) return bytes.push_back(any());
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
    switch (below(4)) {
      case 0: bytes[static_cast<std::size_t>(at)] = any(); break;
      case 1: bytes.erase(bytes.begin() + at, bytes.end()); break;
      case 2: bytes.insert(bytes.begin() + at, any()); break;
      default: bytes[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(1u << below(8));
    }
  }

  std::mt19937 random_{20240607};
};

// `again` gives the encoding of what was parsed, nullopt if it was refused. Texts have one
// encoding, and so has everything else.
void fuzz(const std::vector<Bytes>& seeds, int iterations,
          const std::function<std::optional<Bytes>(ByteView)>& again) {
  for (const Bytes& seed : seeds) ASSERT_EQ(again(seed), seed) << "a good message is refused";
  Mutator mutator;
  for (int i = 0; i < iterations; ++i) {
    const Bytes bytes = mutator.mutate(seeds[static_cast<std::size_t>(i) % seeds.size()]);
    const auto accepted = again(bytes);
    ASSERT_TRUE(!accepted || *accepted == bytes) << "iteration " << i;
  }
}

template <typename Message>
std::optional<Bytes> reencode(ByteView payload) {
  const auto message = Message::parse(payload);
  if (!message) return std::nullopt;
  return message->encode().payload;
}

TEST(Fuzz, handshake_greetings) {
  const Greeting greeting = make_greeting(Side::kInitiator, random_key());
  fuzz({Bytes(greeting.begin(), greeting.end())}, kIterations,
       [](ByteView bytes) -> std::optional<Bytes> {
         const auto nonce = parse_greeting(Side::kInitiator, bytes);
         if (!nonce) return std::nullopt;
         const Greeting same = make_greeting(Side::kInitiator, *nonce);
         return Bytes(same.begin(), same.end());
       });
}

TEST(Fuzz, frame_headers) {
  const Bytes frame = seal_frame(Key{}, 7, {MessageType::kGather, Bytes(20)});
  fuzz({Bytes(frame.begin(), frame.begin() + kFrameHeaderBytes)}, kIterations,
       [&](ByteView bytes) -> std::optional<Bytes> {
         const auto header = parse_frame_header(bytes);
         if (!header) return std::nullopt;
         EXPECT_LE(header->payload_bytes, kMaxPayloadBytes);
         EXPECT_LE(header->type, kLastMessageType);
         return Bytes(bytes.begin(), bytes.end());
       });
}

TEST(Fuzz, sealed_frames_open_only_unchanged) {
  const Key key = random_key();
  const Bytes frame = seal_frame(key, 7, {MessageType::kGather, Bytes(20)});
  fuzz({frame}, kIterations, [&](ByteView bytes) -> std::optional<Bytes> {
    const auto opened = open_frame(key, 7, bytes);
    if (!opened) return std::nullopt;
    EXPECT_TRUE(std::ranges::equal(bytes, frame));
    return seal_frame(key, 7, *opened);
  });
}

TEST(Fuzz, join_and_root_ranks) {
  const ProcessName process = ProcessName::mine();
  fuzz({JoinMessage{100, 3, 8, process}.encode().payload}, kIterations, reencode<JoinMessage>);
  fuzz({RootRanksMessage{process, {}}.encode().payload,
        RootRanksMessage{process, {0, 5, 7}}.encode().payload},
       kIterations, reencode<RootRanksMessage>);
}

TEST(Fuzz, faults_and_small_messages) {
  fuzz({FaultMessage{ErrorCode::kRemote, "rank 3 ended"}.encode().payload,
        FaultMessage{ErrorCode::kTimeout, ""}.encode().payload},
       kIterations, reencode<FaultMessage>);
  fuzz({MissingMessage{"ranks 1, 2", "more"}.encode().payload}, kIterations,
       reencode<MissingMessage>);
  fuzz({LeftMessage{5}.encode().payload}, kIterations / 10, reencode<LeftMessage>);
  fuzz({ClaimMessage{3, {}}.encode().payload,
        ClaimMessage{7, Bytes(kMaxClaimBytes, std::byte{9})}.encode().payload},
       kIterations, [](ByteView bytes) {
         const auto again = reencode<ClaimMessage>(bytes);
         EXPECT_TRUE(!again || again->size() <= 4 + kMaxClaimBytes);
         return again;
       });
  fuzz({SettledMessage{2}.encode().payload}, kIterations / 10, reencode<SettledMessage>);
  fuzz({WelcomeMessage{random_key()}.encode().payload}, kIterations / 10, reencode<WelcomeMessage>);
}

TEST(Fuzz, gather_messages) {
  const Bytes part(30, std::byte{7});
  fuzz({GatherMessage{2, part}.encode().payload}, kIterations, reencode<GatherMessage>);
  fuzz({encode_gathered(3, {part, {}, part})[0].payload}, kIterations,
       [](ByteView bytes) -> std::optional<Bytes> {
         const auto message = GatheredMessage::parse(bytes);
         if (!message) return std::nullopt;
         std::size_t total = 0;
         for (const Bytes& each : message->parts) total += each.size() + 4;
         EXPECT_EQ(total + 12, bytes.size());
         return Bytes(bytes.begin(), bytes.end());
       });
}

TEST(Fuzz, unique_ids) {
  Rendezvous rendezvous;
  rendezvous.root = SocketAddress::resolve("127.0.0.1:99", AF_INET);
  rendezvous.secret = random_key();
  const UniqueId good = encode_unique_id(rendezvous);
  fuzz({Bytes(good.bytes.begin(), good.bytes.end())}, kIterations,
       [](ByteView bytes) -> std::optional<Bytes> {
         UniqueId id{};
         std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
         try {
           const UniqueId same = encode_unique_id(decode_unique_id(id));
           EXPECT_EQ(same.bytes, id.bytes);
           return Bytes(bytes.begin(), bytes.end());
         } catch (const Error& error) {
           EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
           return std::nullopt;
         }
       });
}

TEST(Frame, opens_for_its_own_sequence_and_key_only) {
  const Key key = random_key();
  const Bytes frame = seal_frame(key, 7, {MessageType::kFault, Bytes(3)});
  EXPECT_TRUE(open_frame(key, 7, frame).has_value());
  EXPECT_FALSE(open_frame(key, 8, frame).has_value());
  EXPECT_FALSE(open_frame(random_key(), 7, frame).has_value());
}

TEST(Message, ranks_are_named_as_a_person_would) {
  EXPECT_EQ(name_ranks({3}), "rank 3");
  EXPECT_EQ(name_ranks({2, 5}), "ranks 2, 5");
  std::vector<int> many;
  for (int rank = 0; rank < 20; ++rank) many.push_back(rank);
  EXPECT_NE(name_ranks(many).find("15, ... (4 more)"), std::string::npos);
}

TEST(Message, a_long_fault_is_cut) {
  const auto parsed = FaultMessage::parse(
      FaultMessage{ErrorCode::kSystem, std::string(5000, 'x')}.encode().payload);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->text.size(), 1000u);
}

}  // namespace
}  // namespace catenary
