// Every type of the library once, as docs/library.md shows it. Built by itself, against an
// installed Sava: see CMakeLists.txt and README.md.
#include <sava/sava.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

void CountAssociations() {
  sava::AssociationCounter bought_with_bread;
  bought_with_bread.Add("milk");
  bought_with_bread.Add("butter", 3);
  bought_with_bread.Add("milk");
  for (const auto& [member, count] : bought_with_bread.Top(2)) {
    std::cout << member << " " << count << "\n";
  }
  const std::string bytes = bought_with_bread.Save();
  const auto again = sava::AssociationCounter::Load(bytes);
  std::cout << again->Count("milk") << " of " << again->Total() << "\n";
}

void RememberWithBloom() {
  auto seen = sava::Bloom::Make({.error = 0.001, .capacity = 100'000});
  seen->Add("http://example.com/");
  std::cout << seen->Has("http://example.com/") << seen->Has("http://example.org/") << "\n";
}

void RememberAsTheDocument() {
  sava::BloomFilter<std::string, 500> addresses;
  addresses.Insert("duffy@acme.com");
  std::stringstream file;
  file << addresses;
  sava::BloomFilter<std::string, 500> read;
  file >> read;
  std::cout << read.IsElement("duffy@acme.com") << " " << file.str().size() << "\n";
}

void RememberAndForget() {
  sava::Cuckoo badges;
  badges.Add("A-17");
  badges.Add("A-17");
  badges.Remove("A-17");
  std::cout << badges.Count("A-17") << badges.Has("B-2") << "\n";
}

void EstimateCounts() {
  auto requests = sava::CountMin::Make(2000, 7);
  requests->Add("GET", 3);
  requests->Add("SET");
  std::cout << requests->Estimate("GET") << " of " << requests->total() << "\n";
}

void ListTheMostFrequent() {
  auto words = sava::TopK::Make(2);
  for (const char* word : {"to", "be", "or", "not", "to", "be", "to"}) words->Add(word);
  for (const auto& entry : words->List()) std::cout << entry.item << " " << entry.count << "\n";
}

void FindNearDuplicates() {
  sava::SimHash pages;
  const std::string text = "the quick brown fox jumps over the lazy dog near the river bank";
  pages.Add("first", sava::SimHash::FingerprintOf(text));
  const auto near = pages.Near(sava::SimHash::FingerprintOf(text), 3);
  std::cout << near[0].id << " " << near[0].distance << "\n";
}

void EstimateHowManyDiffer() {
  sava::HyperLogLog visitors;
  visitors.Add("ada");
  visitors.Add("grace");
  visitors.Add("ada");
  std::cout << visitors.Count() << "\n";
}

void LimitARate() {
  const std::int64_t now_ms = 1'700'000'000'000;
  auto bucket = sava::TokenBucket::Make({.limit = 2, .period_ms = 1000}, now_ms);
  std::cout << bucket->Take(2, now_ms).allowed << bucket->Take(1, now_ms).allowed
            << bucket->Take(1, now_ms + 500).allowed << "\n";
}

void ScheduleUrls() {
  const std::int64_t now_ms = 1'700'000'000'000;
  auto frontier = sava::UrlFrontier::Make({.strategy = sava::UrlFrontier::Strategy::kBreadth});
  frontier->Add("http://a.example/1", {}, now_ms);
  frontier->Add("http://a.example/2", {}, now_ms);
  frontier->Add("http://b.example/1", {}, now_ms);
  for (const auto& served : frontier->Next({.count = 3}, now_ms)) std::cout << served.url << "\n";
}

void PackNumbers() {
  std::string bytes;
  sava::AppendVarint(&bytes, 300);
  sava::AppendSignedVarint(&bytes, -2);
  std::string_view rest = bytes;
  std::cout << *sava::TakeVarint(&rest) << " " << *sava::TakeSignedVarint(&rest) << " in "
            << bytes.size() << " bytes\n";
}

void PackRepeatedTexts() {
  const std::vector<std::string_view> states(1000, "waiting for an answer");
  const std::string bytes = sava::EncodeDictionary(states);
  const std::optional<std::vector<std::string_view>> read = sava::DecodeDictionary(bytes);
  std::cout << read->size() << " values in " << bytes.size() << " bytes\n";
}

}  // namespace

int main() {
  std::cout << "libsava " << sava::Version() << "\n";
  CountAssociations();
  RememberWithBloom();
  RememberAsTheDocument();
  RememberAndForget();
  EstimateCounts();
  ListTheMostFrequent();
  FindNearDuplicates();
  EstimateHowManyDiffer();
  LimitARate();
  ScheduleUrls();
  PackNumbers();
  PackRepeatedTexts();
  return 0;
}
