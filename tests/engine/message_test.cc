// Sends and receives: what goes over their links, whose turn it is, and what does not belong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/error.h"
#include "src/engine/framing.h"
#include "src/engine/group_run.h"
#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

using Progress = Task::Progress;

struct Messages : testing::Test {
  Messages() { group.begin(owner); }

  Descriptor opening(std::uint64_t number = 0) const {
    Descriptor descriptor;
    descriptor.sequence = static_cast<std::uint32_t>(number);
    descriptor.kind = Collective::kSend;
    descriptor.reduction = Reduction::kNone;
    descriptor.count = bytes;
    return descriptor;
  }
  MessageSpec& add(Turn& turn) {
    MessageSpec& spec = group.add_message(turn, {});
    spec = {.bytes = bytes, .slice_bytes = 65536, .descriptor = opening(turn.taken - 1)};
    spec.peer = 1;
    return spec;
  }
  MessageSpec& add_send(std::size_t least_loan = SIZE_MAX) {
    MessageSpec& spec = add(sends);
    spec.send = &send;
    spec.input = given.data();
    spec.least_loan = least_loan;
    return spec;
  }
  MessageSpec& add_recv() {
    MessageSpec& spec = add(receives);
    spec.recv = &recv;
    spec.output = taken.data();
    return spec;
  }
  void let_come(const Descriptor& descriptor, const void* payload, std::size_t length) {
    const std::size_t skip = opening_bytes(length);
    recv.message.resize(skip + length);
    std::memcpy(recv.message.data(), &descriptor, sizeof descriptor);
    std::memcpy(recv.message.data() + skip, payload, length);
  }
  void expect_error(ErrorCode code, const std::string& text) {
    try {
      group.poll();
      FAIL() << "nothing was wrong";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
    EXPECT_FALSE(recv.released);
  }
  void let_come(const Loan& loan) { let_come(opening(), &loan, sizeof loan); }

  std::size_t bytes = kCount;
  FakeOwner owner;
  FakeSend send;
  FakeRecv recv;
  Turn sends;
  Turn receives;
  Bytes given = Bytes(kCount, std::byte{1});
  Bytes taken = Bytes(kCount, std::byte{2});
  GroupRun group;
};

// Around where data no longer lies right behind its opening.
struct MessagesOf : Messages, testing::WithParamInterface<std::size_t> {
  MessagesOf() { bytes = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Bytes, MessagesOf,
                         testing::Values(0, 1, 32, 33, 640, 641, 1024, 1025, kCount));

TEST_P(MessagesOf, are_sent_with_an_opening) {
  add_send();
  EXPECT_EQ(group.poll(), Progress::kDone);
  const std::size_t skip = bytes <= 640 ? 24 : bytes <= 1024 ? 56 : 64;
  ASSERT_EQ(send.committed, skip + bytes);
  EXPECT_EQ(std::memcmp(send.slot.data(), "\0\0\0\0", 4), 0);
  EXPECT_EQ(std::memcmp(send.slot.data() + skip, given.data(), bytes), 0);
}

TEST_P(MessagesOf, are_received) {
  add_recv();
  EXPECT_EQ(group.poll(), Progress::kNone);
  EXPECT_EQ(group.waiting()->on, 1);
  EXPECT_EQ(group.waiting()->in.kind, Collective::kRecv);
  let_come(opening(), given.data(), bytes);
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(std::memcmp(taken.data(), given.data(), bytes), 0);
  EXPECT_TRUE(std::all_of(taken.begin() + static_cast<std::ptrdiff_t>(bytes), taken.end(),
                          [](std::byte each) { return each == std::byte{2}; }));
  EXPECT_EQ(recv.bytes_read, bytes);
  EXPECT_TRUE(recv.released);
  EXPECT_TRUE(receives.idle());
}

TEST_F(Messages, that_go_past_the_caches_are_not_read_by_the_link) {
  add_recv().past_caches = true;
  let_come(opening(), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(taken, given);
  EXPECT_EQ(recv.bytes_read, 0u);
}

// Who sleeps meanwhile would let the rest of a long message wait.
TEST_F(Messages, get_on_while_transports_move_bytes_of_them) {
  add_recv();
  owner.moves_bytes = false;
  EXPECT_EQ(group.poll(), Progress::kNone);
  owner.moves_bytes = true;
  EXPECT_EQ(group.poll(), Progress::kSome);
  let_come(opening(), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kDone);
}

TEST_F(Messages, of_another_number_or_length_are_refused) {
  add_recv();
  let_come(opening(7), given.data(), kCount);
  expect_error(ErrorCode::kInvalidUsage, "rank 1 has issued Send number 7");
  let_come(opening(), given.data(), kCount - 1);
  expect_error(ErrorCode::kRemote, "sent 4159 bytes to rank 0 where 4160 belong to Recv number 0");
  Descriptor receive = opening();
  receive.kind = Collective::kRecv;
  let_come(receive, given.data(), kCount);
  expect_error(ErrorCode::kInvalidUsage, "rank 1 has issued Recv number 0");
  recv.message.resize(3);
  expect_error(ErrorCode::kInvalidUsage, "ranks do not agree");
}

TEST_F(Messages, of_more_than_a_slice_come_in_slices) {
  MessageSpec& spec = add(receives);
  spec.recv = &recv;
  spec.output = taken.data();
  spec.slice_bytes = kCount / 4;
  let_come(opening(), given.data(), kCount / 4);
  EXPECT_EQ(group.poll(), Progress::kSome);
  recv.message.assign(given.begin(), given.begin() + kCount / 4);
  recv.later = {recv.message, recv.message};
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(taken, given);
}

TEST_F(Messages, that_are_exchanged_take_turns_with_their_slices) {
  MessageSpec& sent = add(sends);
  sent.send = &send;
  sent.input = given.data();
  sent.slice_bytes = kCount / 2;
  MessageSpec& received = add(receives);
  received.recv = &recv;
  received.output = taken.data();
  received.slice_bytes = kCount / 2;
  let_come(opening(), given.data(), kCount / 2);
  int sent_before = 0;
  recv.on_release = [&] { sent_before = send.commits; };
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(sent_before, 1) << "they did not take turns";
  EXPECT_EQ(send.commits, 2) << "what there was room for has not been sent at once";
}

// Bytes that a send copies into its next slot; nothing else tells who receives what to fetch.
TEST(Message, that_goes_past_the_caches_says_what_is_sent_next) {
  const Bytes given(100);
  for (const bool past_caches : {false, true}) {
    FakeSend send;
    MessageRun run;
    MessageSpec& spec = run.begin();
    spec.send = &send;
    spec.input = given.data();
    spec.bytes = 100;
    spec.slice_bytes = 40;
    spec.past_caches = past_caches;
    for (const std::size_t left : {60, 20, 0}) {
      ByteView soon;
      EXPECT_TRUE(run.move(soon));
      EXPECT_EQ(soon.size(), past_caches ? std::min<std::size_t>(left, 40) : 0);
      EXPECT_EQ(soon.data(), past_caches ? given.data() + 100 - left : nullptr);
    }
  }
}

TEST_F(Messages, to_oneself_are_copied) {
  MessageSpec& spec = add(receives);
  spec.input = given.data();
  spec.output = taken.data();
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(taken, given);
}

TEST_F(Messages, wait_for_their_turn_in_another_group) {
  GroupRun earlier;
  earlier.begin(owner);
  Turn& turn = receives;
  earlier.add_message(turn, {}) = {.recv = &recv,
                                   .output = taken.data(),
                                   .bytes = kCount,
                                   .slice_bytes = 65536,
                                   .descriptor = opening(),
                                   .peer = 1};
  add_recv();
  let_come(opening(1), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kNone) << "it took what was before its turn";
  EXPECT_FALSE(group.waiting());
}

TEST_F(Messages, come_again_in_a_life_of_the_same_stamp) {
  const auto no_renewal = [](MessageSpec&, GroupRun::MadeOf) {};
  for (int i = 0; i < 3; ++i) add_send();  // more than come again
  EXPECT_EQ(group.poll(), Progress::kDone);
  group.begin(owner);
  EXPECT_FALSE(group.repeat_messages(5, no_renewal)) << "nobody stamped them";

  const auto exchange = [&](std::uint32_t send_request, std::uint32_t receive_request) {
    MessageSpec spec{.send = &send,
                     .input = given.data(),
                     .bytes = kCount,
                     .slice_bytes = 65536,
                     .descriptor = opening(sends.taken)};
    group.add_message(sends, {.send = send_request}) = spec;
    spec.send = nullptr;
    spec.recv = &recv;
    spec.output = taken.data();
    spec.peer = 1;
    spec.descriptor = opening(receives.taken);
    group.add_message(receives, {.receive = receive_request}) = spec;
  };
  exchange(3, 4);
  group.stamp_messages(5);
  let_come(opening(0), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kDone);

  group.begin(owner);
  EXPECT_FALSE(group.repeat_messages(6, no_renewal));
  Bytes other = Bytes(kCount, std::byte{7});
  EXPECT_TRUE(group.repeat_messages(5, [&](MessageSpec& spec, GroupRun::MadeOf made_of) {
    EXPECT_EQ(made_of.send + made_of.receive, spec.send != nullptr ? 3u : 4u);
    if (spec.send != nullptr) spec.input = other.data();
    if (spec.recv != nullptr) spec.output = other.data();
  }));
  EXPECT_EQ(sends.taken, 5u);
  EXPECT_EQ(receives.taken, 2u);
  EXPECT_EQ(group.poll(), Progress::kSome) << "what it receives has not come";
  Descriptor sent;
  std::memcpy(&sent, send.slot.data(), sizeof sent);
  EXPECT_EQ(sent, opening(4)) << "it is the fifth one";
  EXPECT_EQ(send.slot[kPaddedDescriptorBytes], std::byte{7});
  let_come(opening(1), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(other, given);
  EXPECT_TRUE(sends.idle() && receives.idle());

  group.begin(owner);
  add_send();  // and they are others then
  EXPECT_EQ(group.poll(), Progress::kDone);
  group.begin(owner);
  EXPECT_FALSE(group.repeat_messages(5, no_renewal));
}

TEST_F(Messages, that_are_lent_keep_their_turn_until_they_are_taken) {
  add_send(kLeastLoan);
  add_send();
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(send.lent, given.data());
  EXPECT_EQ(send.committed, sizeof(Descriptor) + sizeof(Loan));
  EXPECT_TRUE(group.waiting()->only_to_be_taken);
  EXPECT_EQ(group.poll(), Progress::kNone) << "the buffer is not free yet";
  send.lent = nullptr;
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(send.committed, kPaddedDescriptorBytes + kCount);
  EXPECT_TRUE(sends.idle());
}

// A send that its peer has yet to take says nothing of who is at fault.
TEST_F(Messages, that_have_not_come_are_waited_for_before_those_that_have_to_be_taken) {
  add_send(kLeastLoan);
  add_recv();
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(group.waiting()->in.kind, Collective::kRecv);
  EXPECT_FALSE(group.waiting()->only_to_be_taken);
  let_come(opening(), given.data(), kCount);
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(group.waiting()->in.kind, Collective::kSend);
  EXPECT_TRUE(group.waiting()->only_to_be_taken);
}

TEST_F(Messages, that_are_lent_are_read_where_they_lie) {
  add_recv();
  let_come(Loan{0, kCount});
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(taken, recv.memory);
}

// Nor do they have to fit into a slot.
TEST_F(Messages, that_are_lent_are_one_message_of_a_link) {
  add_send(kLeastLoan).slice_bytes = kCount / 2;
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(send.commits, 1);
  send.lent = nullptr;
  EXPECT_EQ(group.poll(), Progress::kDone);

  group.begin(owner);
  add_recv().slice_bytes = kCount / 2;
  let_come(Loan{0, kCount});
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(taken, recv.memory);
  EXPECT_EQ(recv.releases, 1);
}

TEST_F(Messages, that_were_withdrawn_are_not_taken) {
  add_recv();
  let_come(Loan{0, kCount});
  recv.withdrawn = true;
  expect_error(ErrorCode::kRemote, "gave up Recv number 0");
}

TEST_F(Messages, that_are_lent_in_the_wrong_length_are_refused) {
  add_recv();
  let_come(Loan{0, kCount - 1});
  expect_error(ErrorCode::kRemote, "belong to Recv number 0");
}

TEST_F(Messages, that_are_lent_for_too_long_are_refused) {
  add_recv();
  let_come(Loan{0, kCount + 1});
  expect_error(ErrorCode::kRemote, "belong to Recv number 0");
}

TEST_F(Messages, are_withdrawn_when_the_group_is_given_up) {
  add_send(kLeastLoan);
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_FALSE(send.withdrawn);
  group.recycle();
  EXPECT_TRUE(send.withdrawn);
}

// Long enough for both ranks to copy.
struct LongMessages : Messages {
  LongMessages() {
    bytes = RecvLink::kLeastCopiedTogether;
    given.resize(bytes, std::byte{1});
    taken.resize(bytes, std::byte{2});
    recv.memory.assign(bytes, std::byte{3});
    group.expect_messages(2, true);
  }
  void add_long_recv() {
    add_recv().least_loan = kLeastLoan;
    let_come(Loan{0, bytes});
  }
};

TEST_F(LongMessages, are_not_taken_before_the_peer_has_done_its_part) {
  add_long_recv();
  recv.copied = {RecvLink::Copied::kUnderWay, RecvLink::Copied::kUnderWay, RecvLink::Copied::kDone};
  EXPECT_EQ(group.poll(), Progress::kNone);
  EXPECT_EQ(owner.open_to_writers(), 1);
  EXPECT_EQ(group.poll(), Progress::kNone);
  EXPECT_FALSE(recv.released);
  EXPECT_EQ(owner.open_to_writers(), 1) << "it is counted once";
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(recv.asked, 3u);
  EXPECT_EQ(taken, recv.memory);
  EXPECT_EQ(owner.open_to_writers(), 0);
}

TEST_F(LongMessages, are_copied_alone_where_the_link_cannot_share_that) {
  add_long_recv();
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(recv.asked, 1u);
  EXPECT_EQ(taken, recv.memory);
}

TEST_F(LongMessages, are_not_given_up_before_nobody_writes) {
  add_long_recv();
  recv.copied = {RecvLink::Copied::kUnderWay};
  group.poll();
  recv.helped = true;
  EXPECT_FALSE(group.fail(std::exception()));
  recv.helped = false;
  EXPECT_TRUE(group.fail(std::exception()));
  group.recycle();
  EXPECT_EQ(owner.open_to_writers(), 0);
}

TEST_F(LongMessages, are_helped_with_by_who_has_nothing_to_move) {
  add_send(kLeastLoan);
  send.pieces = 2;
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(send.pieces, 2) << "it had something to move";
  owner.waits = false;
  EXPECT_EQ(group.poll(), Progress::kNone);
  EXPECT_EQ(send.pieces, 2) << "nobody has the time";
  owner.waits = true;
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(send.pieces, 1) << "one at a time";
  EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(group.poll(), Progress::kNone);
  send.lent = nullptr;
  EXPECT_EQ(group.poll(), Progress::kDone);
}

// The first one would never leave the other one anything.
TEST_F(LongMessages, to_several_are_helped_with_in_turn) {
  FakeSend other;
  Turn turn;
  add_send(kLeastLoan);
  MessageSpec& spec = add(turn);
  spec.send = &other;
  spec.input = given.data();
  spec.least_loan = kLeastLoan;
  send.pieces = other.pieces = 2;
  EXPECT_EQ(group.poll(), Progress::kSome);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(group.poll(), Progress::kSome);
  EXPECT_EQ(send.pieces, 1);
  EXPECT_EQ(other.pieces, 1);
}

TEST_F(Messages, that_are_short_are_copied_alone) {
  add_recv().least_loan = kLeastLoan;
  recv.copied = {RecvLink::Copied::kUnderWay};
  let_come(Loan{0, bytes});
  EXPECT_EQ(group.poll(), Progress::kDone);
  EXPECT_EQ(recv.asked, 0u);
  EXPECT_EQ(owner.open_to_writers(), 0);
}

}  // namespace
}  // namespace catenary
