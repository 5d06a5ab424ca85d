// The load of `sava bench associations`: N associators, each associated with M keys, each pair
// repeated a random 1 to R times, everything in random order.
//
// Nothing is stored: keys, repetitions and order are computed from the seed, so a load of any size
// costs no memory and the same seed gives the same load. The order is a pseudo-random permutation
// of all N * M * R slots (pair, repetition); a slot beyond its pair's repetitions stands empty.
// Immutable, so any thread may ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sava::cli {

struct AssociationShape {
  uint64_t associators = 100;
  uint64_t associated = 100;
  uint64_t repetitions = 10;
  // How many associated keys there are in all; each associator has `associated` of them.
  // 0: as many as one associator has, so that all have the same.
  uint64_t distinct = 0;
  // Pair after pair, repetitions together, instead of random order.
  bool in_order = false;
  uint64_t seed = 0;
};

// A one-to-one mapping of [0, size) to itself that looks random.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed);
  // REQUIRES: i < size.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t size_;
  uint64_t mask_;
  unsigned shift_;
  uint64_t keys_[3];
};

class AssociationLoad {
 public:
  struct Association {
    uint64_t associator;  // below shape.associators
    uint64_t member;      // below the number of distinct associated keys
  };

  static constexpr uint64_t kMaxSlots = uint64_t{1} << 40;

  // REQUIRES: sizes of at least 1, at most kMaxSlots slots, distinct 0 or >= associated.
  explicit AssociationLoad(const AssociationShape& shape);

  const AssociationShape& shape() const { return shape_; }
  uint64_t slots() const { return shape_.associators * shape_.associated * shape_.repetitions; }
  // How many slots are not empty; looks at every pair.
  uint64_t CountOperations() const;

  // What slot `i` of the order holds, if anything.
  std::optional<Association> At(uint64_t i) const;

  // Member `j` of an associator, j < shape.associated.
  uint64_t Member(uint64_t associator, uint64_t j) const;
  // How often it is repeated: 1 to shape.repetitions.
  uint64_t Repetitions(uint64_t associator, uint64_t j) const;

  // Their GUIDs: 36 characters.
  void AppendAssociator(uint64_t associator, std::string* out) const;
  void AppendMember(uint64_t member, std::string* out) const;
  std::string AssociatorText(uint64_t associator) const;
  std::string MemberText(uint64_t member) const;

 private:
  AssociationShape shape_;
  Permutation order_;
};

}  // namespace sava::cli
