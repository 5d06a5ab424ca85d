// The service of rate limits: take from a bucket, look at it. Buckets are the RL.* commands'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/call.h"

namespace sava::http {

class Limits {
 public:
  // POST: the body, an object, says what is wanted. `name` is the key as the path has it.
  Step Take(Call& call, std::string_view name);
  // GET: the query says what is wanted.
  Step Peek(Call& call, std::string_view name);

 private:
  // Parameters as texts; empty when not given.
  struct Wanted {
    std::string algorithm;
    std::string limit;
    std::string period_ms;
    std::string burst;
    std::string cost;
  };

  // Where a parameter of that name belongs; nullptr when there is none.
  std::string* Place(std::string_view name);
  // Each returns an empty text, or what is wrong.
  std::string ReadBody(std::string_view body);
  std::string ReadQuery(std::string_view query);
  std::string CheckWanted() const;
  Step Run(Call& call, std::string_view command, std::string_view name, const std::string& problem);
  void WriteOutcome(Call& call) const;

  Wanted wanted_;
  std::string key_scratch_;
  std::vector<std::string_view> words_;
};

}  // namespace sava::http
