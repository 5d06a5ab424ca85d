// A made-up network: people, whom they follow and what they wrote, each computed from the seed and
// a number alone, so that making it can be interrupted and resumed anywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "data/model.h"

namespace timeline {

struct NetworkSize {
  std::int64_t users = 0;
  std::int64_t posts = 0;
  std::int64_t fewest_follows = 200;
  std::int64_t most_follows = 800;
  std::uint64_t seed = 1;
};

class Network {
 public:
  explicit Network(const NetworkSize& size) : size_(size) {}

  User MakeUser(Id id) const;
  // Whom a user follows, ascending; never herself.
  std::vector<Id> Following(Id id) const;
  // Post `id` of 1..posts: later ones are newer; owners by a Zipf law.
  Post MakePost(Id id) const;

 private:
  NetworkSize size_;
};

}  // namespace timeline
