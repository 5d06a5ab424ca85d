// Counts associations without a server: links the type library only.
//
//   association_counter [K] < pairs.txt
//
// Each line of standard input is an associator, a tab or a space, and what it is associated with.
// Printed are, for each associator in order of first appearance, its K (5) most frequent keys with
// their counts. Lines without a second word are reported on standard error and left out.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "types/counters/afc.h"

namespace {

using sava::types::Afc;

class Associations {
 public:
  void Record(const std::string& associator, std::string_view associated) {
    const auto [at, is_new] = counters_.try_emplace(associator);
    if (is_new) order_.push_back(associator);
    at->second.Add(associated, 1, 0);  // plain counters do not look at the time
  }

  void Print(size_t k) const {
    for (const std::string& associator : order_) {
      const Afc& counter = counters_.at(associator);
      std::cout << associator << " (" << counter.Card(0) << " keys, " << counter.Total(0)
                << " times, " << counter.layout() << ")\n";
      counter.Top(k, 0, [](std::string_view member, uint64_t count) {
        std::cout << "  " << count << "\t" << member << "\n";
      });
    }
  }

 private:
  std::unordered_map<std::string, Afc> counters_;
  std::vector<std::string> order_;
};

}  // namespace

int main(int argc, char** argv) {
  size_t k = 5;
  if (argc > 2 ||
      (argc == 2 && std::from_chars(argv[1], argv[1] + strlen(argv[1]), k).ec != std::errc())) {
    std::cerr << "usage: association_counter [K] < pairs.txt\n";
    return 2;
  }
  Associations associations;
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t gap = line.find_first_of("\t ");
    if (gap == 0 || gap == std::string::npos || gap + 1 == line.size()) {
      std::cerr << "line " << number << ": two words are needed\n";
      continue;
    }
    associations.Record(line.substr(0, gap), std::string_view(line).substr(gap + 1));
  }
  associations.Print(k);
  return 0;
}
