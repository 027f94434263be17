// PutPort: the least that a network with remote memory can do, and all that links need of it.
//
// Two verbs: put bytes into memory that a peer gave away, which tells the peer 32 bits; and send a
// control message of 112 bytes. Nothing is ordered, neither puts nor control messages nor what is
// told of them. Each arrives once, or a failure is told, unless a connection breaks beneath. That
// is what EFA, verbs and the software providers of libfabric have in common, and what a simulated
// fabric can be.
//
// That a put is done means that its source may change. It says nothing about the peer.
//
// Threads: one at a time. Nothing waits. "Not yet" is false, and then nothing has happened. Owner:
// memory that is registered lies where it is until its PutMemory is destroyed; what a listener is
// shown is the port's until it returns. Failure: what breaks later is told to the listener; what
// cannot be done at all throws Error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/types.h"

namespace catenary {

inline constexpr std::size_t kControlBytes = 112;
using ControlMessage = std::array<std::byte, kControlBytes>;

// A rank may reach its peers over several networks, or several times over one (striped_port.h).
inline constexpr int kMostRails = 4;

// A place in a peer's memory, in the words of the peer's port.
struct PutTarget {
  std::uint64_t address = 0;
  std::array<std::uint64_t, kMostRails> keys{};  // by the rail of who puts; others take the first
};

// Memory that puts may come from and go to, as long as this lives.
class PutMemory {
 public:
  virtual ~PutMemory() = default;
  // Of its first byte; the others follow.
  virtual PutTarget target() const = 0;
};

// Some of our bytes.
struct PutPiece {
  const PutMemory* memory = nullptr;  // that holds them; null: none, where registers_sources() not
  ByteView bytes;
};

struct Put {
  int peer = 0;
  PutPiece head;  // not empty
  PutPiece tail;  // comes behind it at the target; may be empty, and is, unless the port gathers()
  PutTarget target;
  std::uint32_t told = 0;    // to the peer, once all the bytes are there
  std::uint64_t cookie = 0;  // for the listener here
};

// What a port tells, from within progress() only.
class PortListener {
 public:
  virtual void put_done(std::uint64_t cookie) = 0;
  virtual void put_failed(std::uint64_t cookie, const std::string& why) = 0;
  // A peer's put has arrived.
  virtual void was_told(std::uint32_t told) = 0;
  // A peer's put has broken off, and will not come.
  virtual void was_cut(std::uint32_t told) = 0;
  // From anybody at all: nothing is proved yet.
  virtual void control_came(const ControlMessage& message) = 0;
  virtual void control_failed(int peer, const std::string& why) = 0;
  // Nothing can be done any more, with any peer.
  virtual void port_failed(const std::string& why) = 0;

 protected:
  ~PortListener() = default;
};

// Whether peers may still be in the middle of a put to a port that is shut.
enum class Parting { kInPeace, kInTheMiddle };

class PutPort {
 public:
  virtual ~PutPort() = default;

  virtual std::unique_ptr<PutMemory> register_memory(ByteSpan memory) = 0;
  // Of memory that puts only come from: peers cannot write to it.
  virtual std::unique_ptr<PutMemory> register_source(ByteView memory) = 0;
  virtual bool registers_sources() const = 0;
  // Whether a put of two pieces costs no more than one of as many bytes.
  virtual bool gathers() const = 0;
  virtual bool try_put(const Put& put) = 0;
  // The bytes are copied.
  virtual bool try_send(int peer, const ControlMessage& message) = 0;
  // Moves what can move and tells what happened.
  virtual void progress(PortListener& listener) = 0;
  // As Transport's: becomes readable when progress() may move or tell something after this. Always
  // the same one, or none.
  virtual int wait_descriptor() { return -1; }
  // Whether all that was put and sent is done, or has failed.
  virtual bool is_quiet() const = 0;
  // Nothing comes in and nothing goes out any more. Before registered memory is destroyed.
  virtual void shut(Parting parting) noexcept = 0;
};

}  // namespace catenary
