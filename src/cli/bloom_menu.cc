#include "cli/bloom_menu.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/bloom_file.h"

namespace sava::cli {

namespace {

constexpr std::string_view kMenu = R"(          Bloom filter - menu
---------------------------------------
1. Create a Bloom filter
2. Add a value to the Bloom filter
3. Check a value in the Bloom filter
4. Exit
---------------------------------------
)";

constexpr const char* kMenuFile = "bloom.txt";

bool Ask(std::string_view question, std::string* answer) {
  fmt::print("{}", question);
  std::fflush(stdout);
  return static_cast<bool>(std::getline(std::cin, *answer));
}

// Behind what was printed before, also where both go to one file.
void Complain(std::string_view what, const std::string& error) {
  std::fflush(stdout);
  fmt::print(stderr, "The Bloom filter cannot be {}: {}\n", what, error);
}

void Create(const BloomOptions& options) {
  const auto filter =
      MakeFileFilter(options.form(), options.bits, static_cast<uint32_t>(options.hashes));
  const base::Status status =
      filter ? filter.value()->Write(kMenuFile) : base::Status(base::Error{filter.error()});
  if (!status) return Complain("created", status.error());
  fmt::print("The Bloom filter was created.\n");
}

void Add(const std::string& value) {
  const auto filter = ReadBloomFile(kMenuFile);
  base::Status status;
  if (filter) {
    filter.value()->Add(value);
    status = filter.value()->Write(kMenuFile);
  } else {
    status = base::Error{filter.error()};
  }
  if (!status) return Complain("changed", status.error());
  fmt::print("The value '{}' was added to the Bloom filter.\n", value);
}

void Check(const std::string& value) {
  const auto filter = ReadBloomFile(kMenuFile);
  if (!filter) return Complain("opened", filter.error());
  fmt::print("The value '{}' {} in the Bloom filter.\n", value,
             filter.value()->Has(value) ? "may be" : "is not");
}

}  // namespace

void RunBloomMenu(const BloomOptions& options) {
  std::string choice;
  std::string value;
  while (true) {
    fmt::print("{}", kMenu);
    if (!Ask("Enter the number of the operation: ", &choice)) break;
    if (choice == "1") {
      Create(options);
    } else if (choice == "2" || choice == "3") {
      if (!Ask("Enter the value: ", &value)) break;
      choice == "2" ? Add(value) : Check(value);
    } else if (choice == "4") {
      fmt::print("Good bye.\n");
      return;
    } else {
      fmt::print("'{}' is not a choice. Try again.\n", choice);
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

}  // namespace sava::cli
