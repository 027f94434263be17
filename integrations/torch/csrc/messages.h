// Messages: sends and receives with tags and from any source, over the library's sends and
// receives, which have neither.
//
// A message is a frame of fixed size, which says its tag and length and holds it if it is short,
// and then, if it is long, its bytes. What goes from one rank to another goes in one order, on a
// stream of its own. A rank takes in a peer's frames only while a receive that could match waits: a
// long message that comes before its receive stays at the sender, unless another one behind it is
// waited for; then it goes into memory of ours. A rank whose send takes long takes in what its
// receiver sends as well, since the library takes ranks that only send to each other for ranks that
// disagree. No frame ever goes back, and no thread of ours waits for messages: the library's calls
// us when one has come.
//
// Threads: any. Nothing here waits, but Work::wait(). Owner: the process group; what is called back
// shares it. Failure: what ends the communicator ends all receives with it.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "work.h"

namespace catenary_torch {

inline constexpr int kAnySource = -1;

class ReceiveWork;

class Messages : public std::enable_shared_from_this<Messages> {
 public:
  Messages(std::shared_ptr<Communicator> communicator, int rank, int size);
  ~Messages();

  // Of plain tensors.
  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& tensor, int to, int tag,
                                      std::uint64_t sequence, Operation operation);
  c10::intrusive_ptr<c10d::Work> receive(const at::Tensor& tensor, int from, int tag,
                                         std::uint64_t sequence, Operation operation);

  Communicator& communicator() { return *communicator_; }
  void abort(const std::string& why) { communicator_->abort(why); }
  // Leaves; what is still on its way is given up. If nothing is but frames that were asked for, the
  // communicator stays until they come or its ranks end, so that no peer is told of an abort.
  void close();

 private:
  friend class ReceiveWork;
  friend class SendWork;
  static constexpr std::size_t kFrameBytes = 1024;
  struct Header {
    std::int32_t tag;
    std::int32_t type;  // an at::ScalarType
    std::uint64_t bytes;
  };
  static constexpr std::size_t kShortBytes = kFrameBytes - sizeof(Header);
  struct Frame {
    Header header;
    std::byte content[kShortBytes];
  };
  // A message that came before its receive. `wanted_by` waits for the rest of it.
  struct Early {
    Header header;
    at::Tensor content;
    bool complete;
    c10::intrusive_ptr<ReceiveWork> wanted_by;
  };
  struct Peer {
    std::shared_ptr<Stream> send_stream;
    std::shared_ptr<Stream> receive_stream;
    Frame frame;
    bool frame_is_due = false;  // a receive for it is on the stream
    bool has_held = false;      // the frame's long content is still to be taken
    std::list<Early> early;
  };

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  bool is_wanted(int from) const;
  void ask_for_frame(int from);
  void frame_came(int from);
  void take(int from, const c10::intrusive_ptr<ReceiveWork>& work);
  void take_early(int from);
  bool match_early(int from, const c10::intrusive_ptr<ReceiveWork>& work);
  c10::intrusive_ptr<ReceiveWork> match_posted(int from, int tag);
  // Calls `then` under the lock when the stream has come here; if all is lost, `served` hears of
  // it.
  void on_receive_stream(int from, const c10::intrusive_ptr<ReceiveWork>& served,
                         std::function<void()> then);
  void receive_into(void* memory, std::size_t bytes, int from);
  std::exception_ptr misfit(const ReceiveWork& work, int from, const Header& header) const;
  void deliver(const c10::intrusive_ptr<ReceiveWork>& work, int from, const Header& header,
               const void* content);
  void fail_all(const std::exception_ptr& error);

  const std::shared_ptr<Communicator> communicator_;
  const int rank_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;           // guarded by mutex_
  std::list<c10::intrusive_ptr<ReceiveWork>> posted_;  // guarded by mutex_; not matched yet
};

class SendWork final : public CatenaryWork {
 public:
  SendWork(int rank, std::uint64_t sequence, Operation operation,
           std::shared_ptr<Communicator> communicator, std::shared_ptr<Messages> messages, int to);
  void linger() override;

 private:
  const std::shared_ptr<Messages> messages_;
  const int to_;
};

// Done when a message has been put into its tensor.
class ReceiveWork final : public CatenaryWork {
 public:
  ReceiveWork(int rank, std::uint64_t sequence, Operation operation,
              std::shared_ptr<Communicator> communicator, std::shared_ptr<Messages> messages,
              at::Tensor tensor, int from, int tag);
  int sourceRank() const override;
  bool done() const override { return done_.load(); }

 protected:
  bool went_well() const override { return !has_failed(); }
  void wait_until_done() override;
  void settle_by_itself() override;

 private:
  friend class Messages;
  // From Messages, under its lock.
  void arrived(int from, std::exception_ptr error);

  const std::shared_ptr<Messages> messages_;
  const at::Tensor tensor_;
  const int from_;
  const int tag_;
  std::atomic<int> source_{kAnySource};
  std::atomic<bool> done_{false};
  std::mutex done_mutex_;
  std::condition_variable done_changed_;
  bool call_back_ = false;  // guarded by done_mutex_
};

}  // namespace catenary_torch
