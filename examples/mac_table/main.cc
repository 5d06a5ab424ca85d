// The MAC table of a switch: for each port a filter of the addresses that are behind it. A frame
// goes to the ports whose filter says maybe; to all of them when none does.
//
//   mac_table < lines.txt
//
// "learn MAC PORT", "forget MAC PORT", "frame MAC".
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "types/filters/bloom.h"

namespace {

using sava::types::Bloom;
using sava::types::FilterHash;

class Switch {
 public:
  void Learn(const std::string& mac, int port) {
    std::unique_ptr<Bloom>& filter = ports_[port];
    if (filter == nullptr) filter = Bloom::Make({.error = 0.001, .deletable = true});
    if (!filter->Has(FilterHash(mac))) filter->Add(FilterHash(mac));
  }
  void Forget(const std::string& mac, int port) {
    const auto at = ports_.find(port);
    if (at != ports_.end()) at->second->Remove(FilterHash(mac));
  }

  void Frame(const std::string& mac) const {
    std::cout << mac << " ->";
    bool known = false;
    for (const auto& [port, filter] : ports_) {
      if (!filter->Has(FilterHash(mac))) continue;
      std::cout << " " << port;
      known = true;
    }
    std::cout << (known ? "\n" : " all ports\n");
  }

 private:
  std::map<int, std::unique_ptr<Bloom>> ports_;
};

}  // namespace

int main() {
  Switch table;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    std::string mac;
    int port = 0;
    words >> verb >> mac >> port;
    if (verb == "learn") table.Learn(mac, port);
    if (verb == "forget") table.Forget(mac, port);
    if (verb == "frame") table.Frame(mac);
  }
  return 0;
}
