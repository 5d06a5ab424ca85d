// A black list with a white list: packets from blocked addresses are dropped. A filter may take a
// friend for blocked; the white list, which is small and exact, lets those through. Unlike the
// document's filter this one forgets: an address that behaves again is taken off the list.
//
//   black_list < lines.txt
//
// "block ADDRESS", "unblock ADDRESS", "trust ADDRESS", "packet ADDRESS".
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "types/filters/bloom.h"

namespace {

using sava::types::Bloom;
using sava::types::FilterHash;

class Firewall {
 public:
  void Block(const std::string& address) {
    if (blocked_->Has(FilterHash(address))) return;  // once is enough: every add counts
    blocked_->Add(FilterHash(address));
  }
  void Unblock(const std::string& address) { blocked_->Remove(FilterHash(address)); }
  void Trust(const std::string& address) { trusted_.insert(address); }

  const char* Packet(const std::string& address) const {
    if (!blocked_->Has(FilterHash(address))) return "passes";
    return trusted_.contains(address) ? "passes (white list)" : "is dropped";
  }

 private:
  std::unique_ptr<Bloom> blocked_ = Bloom::Make({.error = 0.001, .deletable = true});
  std::set<std::string> trusted_;
};

}  // namespace

int main() {
  Firewall firewall;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    std::string address;
    words >> verb >> address;
    if (verb == "block") firewall.Block(address);
    if (verb == "unblock") firewall.Unblock(address);
    if (verb == "trust") firewall.Trust(address);
    if (verb == "packet") {
      std::cout << address << " " << firewall.Packet(address) << "\n";
    }
  }
  return 0;
}
