// Barrier: what replies wait for. A reply that tells of a change leaves when the change is kept.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace sava::journal {

class Barrier {
 public:
  virtual ~Barrier() = default;
  // Every ticket below it is where the policy wants it before a reply may leave.
  virtual uint64_t kept() const = 0;
  // Nothing counts as kept before it is on disk: a reply also waits for what its client has read.
  virtual bool always() const = 0;
  // Merging and writing is soon over, so that the loop that waits for it may do it itself.
  virtual bool quick() const = 0;
  // Nothing keeps it from keeping more.
  virtual bool good() const = 0;
};

}  // namespace sava::journal
