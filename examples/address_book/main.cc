// The document's first use of a Bloom filter: is this e-mail address in the address book? The
// filter lives where the mail is written; the address book itself is asked only when the filter
// says maybe.
//
//   address_book < lines.txt
//
// "contact ADDRESS" puts somebody into the book, "write ADDRESS" is a mail being written.
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "types/filters/bloom.h"

namespace {

using sava::types::Bloom;
using sava::types::FilterHash;

class Mail {
 public:
  void Contact(const std::string& address) {
    filter_->Add(FilterHash(address));
    book_.insert(address);
  }

  void Write(const std::string& address) {
    if (!filter_->Has(FilterHash(address))) {
      std::cout << address << ": not in the address book, save it?\n";
      return;
    }
    ++lookups_;
    const bool known = book_.contains(address);
    std::cout << address
              << (known ? ": known\n" : ": not in the address book after all, save it?\n");
  }

  void Summary() const {
    std::cout << book_.size() << " contacts, the address book was asked " << lookups_ << " times\n";
  }

 private:
  // A thousand contacts at 1 %: 1,280 bytes, whatever the addresses are like.
  std::unique_ptr<Bloom> filter_ = Bloom::Make({.error = 0.01, .capacity = 1000, .reserved = true});
  std::set<std::string> book_;  // stands for the database behind the network
  int lookups_ = 0;
};

}  // namespace

int main() {
  Mail mail;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    std::string address;
    words >> verb >> address;
    if (verb == "contact") mail.Contact(address);
    if (verb == "write") mail.Write(address);
  }
  mail.Summary();
  return 0;
}
