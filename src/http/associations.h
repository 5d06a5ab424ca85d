// The service of the association counter: record a pair, ask for the most frequent, forget. An
// associator is the key PREFIX + its name, its pairs are the AFC.* commands' business.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/call.h"
#include "http/json.h"

namespace sava::http {

inline constexpr int64_t kMaxTop = 10000;

// {"key": …, "associatedKey": …}: names in any case, values strings or numbers as they are written.
// Views point into the text or into the scratch strings.
struct Association {
  std::string_view key;
  std::string_view associated;
  std::string key_scratch;
  std::string associated_scratch;
};
bool ReadAssociation(JsonReader* reader, Association* out);

class Associations {
 public:
  Step Record(Call& call);
  // `name` is the associator as the path has it.
  Step Top(Call& call, std::string_view name);
  Step Forget(Call& call, std::string_view name);
  static std::unique_ptr<Job> StartBatch(const Call& call);

 private:
  // The key of an associator named in a path; false with the problem in the response.
  bool KeyOf(Call& call, std::string_view name);

  std::string key_;
  std::string scratch_;
  Association association_;
};

}  // namespace sava::http
