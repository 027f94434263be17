// The ends of a link over a stream socket, with Unix sockets for the network.
#include "src/transport/socket_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <random>

#include "src/base/error.h"
#include "tests/transport/attached_ranks.h"

namespace catenary::test {
namespace {

// Both ends of a connection.
struct Stream {
  // `room`: for bytes that nobody has read; 0: the system's.
  explicit Stream(int room = 0) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2; ++i) {
      ends[i] = std::make_shared<SocketStream>(UnsharedFd::made_by([&] { return fds[i]; }));
      if (room == 0) continue;
      EXPECT_EQ(::setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    }
  }
  SharedSocket ends[2];
};

void say(const SharedSocket& socket, ByteView bytes) {
  EXPECT_EQ(::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// How many bytes wait to be read.
std::size_t unread(const SharedSocket& socket) {
  std::array<std::byte, 1 << 16> bytes;
  const ssize_t count = ::recv(socket->get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return static_cast<std::size_t>(std::max<ssize_t>(count, 0));
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
    return error.what();
  }
  return "no failure";
}

void send(SocketSender& sender, std::size_t bytes, std::uint64_t message) {
  fill(sender.try_acquire(bytes), message);
  sender.commit(bytes);
}

void receive(SocketReceiver& receiver, std::size_t bytes, std::uint64_t message) {
  ASSERT_NO_THROW(check(receiver.try_peek(), bytes, message));
  receiver.release();
}

TEST(SocketLink, a_length_beyond_the_slot_is_the_peers_fault) {
  const Stream stream;
  SocketReceiver receiver({2, 64}, {.rank = 4, .peer = 5});
  receiver.connected(stream.ends[1]);
  const std::uint32_t words[] = {4, 0x01020304, 65};
  say(stream.ends[0], std::as_bytes(std::span(words)));
  EXPECT_EQ(receiver.try_peek().size(), 4u);
  receiver.release();
  EXPECT_EQ(failure_of([&] { receiver.try_peek(); }),
            "rank 4 lost the connection to rank 5: it sent a message of 65 bytes for slots of 64");
}

TEST(SocketLink, a_held_message_keeps_its_length_while_the_next_headers_come) {
  const Stream stream;
  SocketSender sender({8, 64}, {.rank = 1, .peer = 0});
  SocketReceiver receiver({2, 64}, {.rank = 0, .peer = 1});
  sender.connected(stream.ends[0]);
  receiver.connected(stream.ends[1]);
  for (std::size_t i = 1; i <= 8; ++i) {
    fill(sender.try_acquire(i), i);
    sender.commit(i);
  }
  for (std::size_t i = 1; i <= 8; ++i) {
    for (int again = 0; again < 3; ++again) EXPECT_NO_THROW(check(receiver.try_peek(), i, i));
    receiver.release();
  }
}

// Of what lies in the caller's memory the kernel takes all, a piece, or nothing.
TEST(SocketLink, frames_from_elsewhere_may_be_taken_in_pieces) {
  const Stream stream(20'000);
  constexpr std::size_t kSlotBytes = 16384;
  SocketSender sender({4, kSlotBytes}, {.rank = 1, .peer = 0});
  SocketReceiver receiver({4, kSlotBytes}, {.rank = 0, .peer = 1});
  sender.connected(stream.ends[0]);
  receiver.connected(stream.ends[1]);
  const auto length = [](std::uint64_t i) { return 1 + i * 7919 % kSlotBytes; };
  std::uint64_t given = 0;
  std::vector<std::byte> elsewhere(kSlotBytes);
  for (std::uint64_t taken = 0; taken < 500;) {
    for (std::uint64_t i = 0; i < 1 + taken % 7; ++i) {
      const std::size_t bytes = length(given);
      const std::size_t skip = given % 4 == 0 ? 0 : given * 31 % bytes;
      const ByteSpan span = sender.try_acquire(bytes);
      if (span.empty()) break;
      fill(ByteSpan(elsewhere).first(bytes), given);
      std::copy_n(elsewhere.begin(), skip, span.begin());
      sender.commit_from(skip, ByteView(elsewhere).subspan(skip, bytes - skip));
      std::fill(elsewhere.begin(), elsewhere.end(), std::byte{0xee});
      ++given;
    }
    sender.pump();
    ASSERT_FALSE(sender.pump()) << "nothing was read meanwhile";
    for (std::uint64_t i = 0; i < 1 + taken % 5 && taken < given; ++i, ++taken) {
      const ByteView view = receiver.try_peek();
      if (view.empty()) break;
      ASSERT_NO_THROW(check(view, length(taken), taken));
      receiver.release();
    }
    if (!sender.try_flush()) continue;
    sender.pump();
    ASSERT_FALSE(sender.pump()) << "all was sent";
  }
}

// Who waits for an answer does not use the link again that could tell.
TEST(SocketLink, a_sender_tells_that_what_was_committed_never_arrives) {
  SocketSender sender({4, 64}, {.rank = 1, .peer = 0});
  sender.failed("nobody answers");
  EXPECT_NO_THROW(sender.check_sent()) << "nothing was to be sent";
  SocketSender other({4, 64}, {.rank = 1, .peer = 0});
  fill(other.try_acquire(8), 0);
  other.commit(8);
  EXPECT_NO_THROW(other.check_sent()) << "it may yet be sent";
  other.failed("nobody answers");
  EXPECT_EQ(failure_of([&] { other.check_sent(); }),
            "rank 1 lost the connection to rank 0: nobody answers");
}

// Whatever the network makes of them: in the midst of headers, many in one, with slots full or not.
TEST(SocketLink, frames_may_come_in_pieces_of_any_length) {
  const std::vector<std::uint32_t> lengths = {1, 3, 600, 4, 1024, 511, 512, 513, 2, 60, 1, 1000};
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto header = std::as_bytes(std::span(&lengths[i], 1));
    stream.insert(stream.end(), header.begin(), header.end());
    std::vector<std::byte> data(lengths[i]);
    fill(data, i);
    stream.insert(stream.end(), data.begin(), data.end());
  }
  for (const std::size_t piece : {1, 2, 3, 5, 63, 512, 515, 516, 517, 1100, 10000}) {
    const Stream wire;
    SocketReceiver receiver({2, 1024}, {.rank = 0, .peer = 1});
    receiver.connected(wire.ends[1]);
    std::size_t said = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      ByteView view;
      while ((view = receiver.try_peek()).empty()) {
        ASSERT_LT(said, stream.size()) << "message " << i << " in pieces of " << piece;
        const std::size_t bytes = std::min(piece, stream.size() - said);
        say(wire.ends[0], std::span(stream).subspan(said, bytes));
        said += bytes;
      }
      EXPECT_NO_THROW(check(view, lengths[i], i)) << "message " << i << " in pieces of " << piece;
      receiver.release();
    }
    EXPECT_TRUE(receiver.try_peek().empty());
  }
}

// Rank 1 sends to rank 0 over a stream of its own or over that of the link against it.
struct TwoLinks {
  static constexpr SlotRingShape kShape = {8, 16384};
  explicit TwoLinks(int room = 0) : up(room), down(room) {
    to_lower.connected(up.ends[1]);
    at_lower.connected(up.ends[0]);
    to_higher.connected(down.ends[0]);
    at_higher.connected(down.ends[1]);
  }
  void share() {
    to_lower.share(down.ends[1]);
    at_lower.share(down.ends[0]);
  }

  // The higher rank hears the lower one, and answers.
  void answer(std::size_t bytes, std::uint64_t message) {
    send(to_higher, 8, message);
    receive(at_higher, 8, message);
    send(to_lower, bytes, message);
  }

  Stream up;
  Stream down;
  SocketSender to_lower{kShape, {.rank = 1, .peer = 0}};
  SocketReceiver at_lower{kShape, {.rank = 0, .peer = 1}};
  SocketSender to_higher{kShape, {.rank = 0, .peer = 1}};
  SocketReceiver at_higher{kShape, {.rank = 1, .peer = 0}};
};

TEST(SocketLink, short_answers_of_the_higher_rank_go_over_the_stream_against_them) {
  TwoLinks links;
  links.share();
  for (std::uint64_t i = 0; i <= kShortInARow; ++i) links.answer(8, i);
  EXPECT_EQ(unread(links.down.ends[0]), 12u);
  for (std::uint64_t i = 0; i <= kShortInARow; ++i) receive(links.at_lower, 8, i);
  links.answer(kShortMessageBytes, 7);
  links.answer(kShortMessageBytes + 1, 8);
  EXPECT_EQ(unread(links.up.ends[0]), kShortMessageBytes + 5);
  links.answer(8, 9);
  EXPECT_EQ(unread(links.up.ends[0]), kShortMessageBytes + 5 + 12);
  receive(links.at_lower, kShortMessageBytes, 7);
  receive(links.at_lower, kShortMessageBytes + 1, 8);
  receive(links.at_lower, 8, 9);
}

TEST(SocketLink, what_nobody_answers_goes_over_its_own_stream) {
  TwoLinks links;
  links.share();
  for (std::uint64_t i = 0; i < 2 * kShortInARow; ++i) {
    send(links.to_lower, 8, i);
    receive(links.at_lower, 8, i);
  }
  EXPECT_EQ(unread(links.down.ends[0]), 0u);
  for (std::uint64_t i = 0; i < 2 * kShortInARow; ++i) {
    links.answer(8, i);
    receive(links.at_lower, 8, i);
  }
  for (std::uint64_t i = 0; i < kMostUnanswered; ++i) {
    send(links.to_lower, 8, i);
    EXPECT_EQ(unread(links.up.ends[0]) > 0, i + 1 >= kMostUnanswered) << "message " << i;
    receive(links.at_lower, 8, i);
  }
}

TEST(SocketLink, the_lower_rank_keeps_to_its_own_stream) {
  TwoLinks links;
  links.share();
  for (std::uint64_t i = 0; i < 8; ++i) send(links.to_higher, 8, i);
  EXPECT_EQ(unread(links.up.ends[1]), 0u);
  for (std::uint64_t i = 0; i < 8; ++i) receive(links.at_higher, 8, i);
  // And is not told of another.
  const std::uint32_t turn = 0;
  say(links.down.ends[0], std::as_bytes(std::span(&turn, 1)));
  EXPECT_EQ(
      failure_of([&] { links.at_higher.try_peek(); }),
      "rank 1 lost the connection to rank 0: it sent a message of 0 bytes for slots of 16384");
}

// The peer may have read that it is to look there before it knows of that connection.
TEST(SocketLink, a_receiver_waits_for_the_stream_that_it_was_told_of) {
  TwoLinks links;
  links.to_lower.share(links.down.ends[1]);
  for (std::uint64_t i = 0; i < 8; ++i) links.answer(8, i);
  for (std::uint64_t i = 0; i < kShortInARow; ++i) receive(links.at_lower, 8, i);
  EXPECT_TRUE(links.at_lower.try_peek().empty());
  links.at_lower.share(links.down.ends[0]);
  for (std::uint64_t i = kShortInARow; i < 8; ++i) receive(links.at_lower, 8, i);
}

// One direction of a pair of links, which sends what there is room for and takes what has come.
class Traffic {
 public:
  Traffic(SocketSender& sender, SocketReceiver& receiver, std::uint32_t seed)
      : sender_(sender), receiver_(receiver), lengths_(seed), choices_(seed + 1) {}

  void give(std::size_t most) {
    for (std::size_t i = 0; i < most; ++i) {
      if (given_.size() == taken_ + TwoLinks::kShape.slots) break;
      const std::size_t bytes = next_length();
      const ByteSpan span = sender_.try_acquire(bytes);
      if (span.empty()) break;
      std::vector<std::byte> data(bytes);
      fill(data, given_.size());
      const std::size_t skip = choices_() % 2 == 0 ? bytes : choices_() % bytes;
      std::copy_n(data.begin(), skip, span.begin());
      if (skip == bytes) {
        sender_.commit(bytes);
      } else {
        sender_.commit_from(skip, ByteView(data).subspan(skip));
      }
      given_.push_back(bytes);
    }
    sender_.pump();
  }

  void take(std::size_t most) {
    for (std::size_t i = 0; i < most && taken_ < given_.size(); ++i) {
      const ByteView view = receiver_.try_peek();
      if (view.empty()) return;
      ASSERT_NO_THROW(check(view, given_[taken_], taken_)) << "message " << taken_;
      receiver_.release();
      ++taken_;
    }
  }
  std::size_t taken() const { return taken_; }

 private:
  // Runs of short ones and of long ones, and of one length.
  std::size_t next_length() {
    if (run_ == 0) {
      run_ = 1 + lengths_() % 20;
      most_ = lengths_() % 3 == 0 ? 12000 : kShortMessageBytes + 2;
      fixed_ = lengths_() % 2 == 0 ? 1 + lengths_() % most_ : 0;
    }
    --run_;
    return fixed_ > 0 ? fixed_ : 1 + lengths_() % most_;
  }

  SocketSender& sender_;
  SocketReceiver& receiver_;
  std::mt19937 lengths_;
  std::mt19937 choices_;
  std::vector<std::size_t> given_;
  std::size_t taken_ = 0;
  std::size_t run_ = 0;
  std::size_t most_ = 1;
  std::size_t fixed_ = 0;
};

TEST(SocketLink, both_ways_keep_their_order_whatever_goes_over_which_stream) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TwoLinks links(seed % 2 == 0 ? 6000 : 0);
    Traffic up(links.to_lower, links.at_lower, seed);
    Traffic down(links.to_higher, links.at_higher, seed + 100);
    const auto shared_after = static_cast<std::uint32_t>(random() % 60);
    for (std::uint32_t step = 0; up.taken() < 600 || down.taken() < 600; ++step) {
      ASSERT_LT(step, 100'000u);
      if (step == shared_after) links.to_lower.share(links.down.ends[1]);
      if (step == shared_after + random() % 3) links.at_lower.share(links.down.ends[0]);
      if (step == shared_after + 3) links.share();
      up.give(random() % 5);
      down.give(random() % 5);
      up.take(random() % 5);
      down.take(random() % 5);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace catenary::test
