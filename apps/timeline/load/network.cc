#include "load/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace timeline {
namespace {

constexpr std::int64_t kFirstTime = 1514764800000;  // 1 January 2018
constexpr std::int64_t kSpan = 5LL * 365 * 24 * 3600 * 1000;

constexpr const char* kSyllables[] = {"ma", "ri", "ko",  "len", "ta", "vo", "san", "el",
                                      "du", "no", "bra", "mi",  "zo", "ra", "pe",  "lja"};
constexpr const char* kWords[] = {"the",     "server",    "file",    "install", "when",    "I",
                                  "try",     "update",    "package", "error",   "screen",  "after",
                                  "boot",    "and",       "network", "does",    "not",     "work",
                                  "version", "problem",   "command", "line",    "how",     "can",
                                  "driver",  "kernel",    "folder",  "with",    "desktop", "from",
                                  "disk",    "partition", "user",    "window",  "sound",   "a"};

// SplitMix64: good enough, and the same everywhere.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t kind, std::uint64_t number)
      : state_(seed * 0x9E3779B97F4A7C15u ^ (kind << 56) ^ number * 0xD1342543DE82EF95u) {
    Next();
  }
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::int64_t Below(std::int64_t limit) {
    return static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(limit));
  }
  double Fraction() { return static_cast<double>(Next() >> 11) / 9007199254740992.0; }

 private:
  std::uint64_t state_;
};

std::string Words(Random* random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    if (!text.empty()) text += ' ';
    text += kWords[random->Below(static_cast<std::int64_t>(std::size(kWords)))];
  }
  return text;
}

std::string Name(Random* random) {
  std::string name;
  for (int part = 0; part < 2; ++part) {
    std::string word;
    for (std::int64_t i = 0, count = 2 + random->Below(2); i < count; ++i) {
      word += kSyllables[random->Below(static_cast<std::int64_t>(std::size(kSyllables)))];
    }
    word[0] = static_cast<char>(word[0] - 32);
    name += (part > 0 ? " " : "") + word;
  }
  return name;
}

}  // namespace

User Network::MakeUser(Id id) const {
  Random random(size_.seed, 1, static_cast<std::uint64_t>(id));
  User user;
  user.id = id;
  user.email = fmt::format("user{}@example.org", id);
  user.display_name = Name(&random);
  if (random.Below(3) == 0)
    user.about = Words(&random, 20 + static_cast<std::size_t>(random.Below(200)));
  return user;
}

std::vector<Id> Network::Following(Id id) const {
  Random random(size_.seed, 2, static_cast<std::uint64_t>(id));
  auto others = size_.users - 1;
  auto most = std::min(size_.most_follows, others);
  auto fewest = std::min(size_.fewest_follows, most);
  auto count = static_cast<std::size_t>(fewest + random.Below(most - fewest + 1));
  std::vector<Id> ids;
  // Drawn until enough are different; of a small network all are taken and some dropped.
  if (count * 2 > static_cast<std::size_t>(others)) {
    for (Id other = 1; other <= size_.users; ++other) {
      if (other != id) ids.push_back(other);
    }
    for (std::size_t i = 0; i < count; ++i) {
      auto rest = static_cast<std::int64_t>(ids.size() - i);
      std::swap(ids[i], ids[i + static_cast<std::size_t>(random.Below(rest))]);
    }
    ids.resize(count);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  while (ids.size() < count) {
    while (ids.size() < count) {
      auto other = 1 + random.Below(size_.users);
      if (other != id) ids.push_back(other);
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  return ids;
}

Post Network::MakePost(Id id) const {
  Random random(size_.seed, 3, static_cast<std::uint64_t>(id));
  Post post;
  post.id = id;
  // Rank r writes about 1/r as much as rank 1; ranks are spread over the ids.
  auto rank =
      static_cast<std::int64_t>(std::pow(static_cast<double>(size_.users), random.Fraction()));
  post.owner = 1 + rank * 7919 % size_.users;
  auto step = std::max<std::int64_t>(1, kSpan / std::max<std::int64_t>(1, size_.posts));
  post.created = kFirstTime + (id - 1) * step + random.Below(step);
  post.title = Words(&random, 15 + static_cast<std::size_t>(random.Below(60)));
  // Most messages are short, some long.
  auto length = 80.0 * std::exp(2.6 * random.Fraction() * random.Fraction() + random.Fraction());
  post.message = Words(&random, static_cast<std::size_t>(length));
  return post;
}

}  // namespace timeline
