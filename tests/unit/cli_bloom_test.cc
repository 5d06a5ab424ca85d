// `sava bloom`: files in text form beside the class of document S2, and the pictures of `explain`.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bloom_listing.h"
#include "cli/bloom.h"
#include "cli/bloom_explain.h"
#include "cli/bloom_file.h"
#include "cli/bloom_text.h"

namespace sava::cli {
namespace {

using Words = std::vector<std::string>;

// A folder of its own as the current directory, and std::cout kept back: the document's class
// prints a line for every value.
class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::string name = std::filesystem::temp_directory_path() / "sava-bloom-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    std::filesystem::current_path(name);
    folder_ = name;
    printed_ = std::cout.rdbuf(said_.rdbuf());
  }
  void TearDown() override {
    std::cout.rdbuf(printed_);
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path before_;
  std::filesystem::path folder_;
  std::ostringstream said_;
  std::streambuf* printed_ = nullptr;
};

std::string FileText(const std::string& path = "bloom.txt") {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteText(const std::string& text) { std::ofstream("bloom.txt", std::ios::binary) << text; }

// As a shell would call it: the exit code, and what it printed.
int Bloom(const Words& words, std::string* out = nullptr) {
  testing::internal::CaptureStdout();
  const int code = RunBloom(words);
  const std::string printed = testing::internal::GetCapturedStdout();
  if (out != nullptr) *out = printed;
  return code;
}

// Words of 1 to 24 letters, some of them of two bytes.
Words RandomWords(base::Rng* rng, size_t count) {
  const std::string letters[] = {"a", "b", "c", "x", "@", ".", "0", "č", "ž", "š"};
  Words words(count);
  for (std::string& word : words) {
    for (uint64_t left = 1 + rng->Below(24); left != 0; --left) {
      word += letters[rng->Below(std::size(letters))];
    }
  }
  return words;
}

std::string JoinLines(const std::vector<bool>& answers) {
  std::string text;
  for (const bool maybe : answers) text += maybe ? "maybe\n" : "no\n";
  return text;
}

template <int kBits>
void ExpectBothWays(uint64_t seed) {
  SCOPED_TRACE(kBits);
  base::Rng rng(seed);
  const Words added = RandomWords(&rng, 60);
  Words asked = RandomWords(&rng, 300);
  asked.insert(asked.end(), added.begin(), added.end());
  const std::string bits = std::to_string(kBits);

  // The document's program writes, ours answers.
  BloomFilter<std::string, kBits> theirs;
  theirs.CreateBF();
  for (const std::string& word : added) theirs.InsertBF(word);
  const std::string written = FileText();
  ASSERT_EQ(written.size(), size_t{kBits});
  std::vector<bool> expected;
  for (const std::string& word : asked) expected.push_back(theirs.IsElementBF(word));
  Words check = {"check", "bloom.txt"};
  check.insert(check.end(), asked.begin(), asked.end());
  std::string answers;
  Bloom(check, &answers);
  EXPECT_EQ(answers, JoinLines(expected));
  EXPECT_EQ(FileText(), written);

  // Ours writes the same file, and the document's program answers by it.
  ASSERT_EQ(Bloom({"create", "bloom.txt", "--text", "--force", "--bits", bits}), 0);
  EXPECT_EQ(FileText(), std::string(kBits, '0'));
  Words add = {"add", "bloom.txt"};
  add.insert(add.end(), added.begin(), added.end());
  ASSERT_EQ(Bloom(add), 0);
  EXPECT_EQ(FileText(), written);
  BloomFilter<std::string, kBits> again;
  std::vector<bool> found;
  for (const std::string& word : asked) found.push_back(again.IsElementBF(word));
  EXPECT_EQ(found, expected);

  // In turns, into one file.
  again.CreateBF();
  for (size_t i = 0; i < added.size(); ++i) {
    if (i % 2 == 0) {
      again.InsertBF(added[i]);
    } else {
      ASSERT_EQ(Bloom({"add", "bloom.txt", added[i]}), 0);
    }
  }
  EXPECT_EQ(FileText(), written);
}

using BloomText = InFolder;

TEST_F(BloomText, IsReadAndWrittenAsByTheDocumentsClass) {
  uint64_t seed = 1;
  for (int round = 0; round < 5; ++round) {
    ExpectBothWays<BLOOM>(seed++);
    ExpectBothWays<1>(seed++);
    ExpectBothWays<64>(seed++);
    ExpectBothWays<997>(seed++);
    ExpectBothWays<20011>(seed++);
  }
}

TEST_F(BloomText, MenuWorksOnTheDocumentsFile) {
  BloomFilter<std::string> theirs;
  theirs.CreateBF();
  theirs.InsertBF("roger@acme.com");
  std::istringstream typed("3\nroger@acme.com\n2\nduffy@acme.com\n4\n");
  std::streambuf* const keyboard = std::cin.rdbuf(typed.rdbuf());
  std::string out;
  EXPECT_EQ(Bloom({"--text"}, &out), 0);
  EXPECT_NE(out.find("'roger@acme.com' may be in"), std::string::npos) << out;
  EXPECT_TRUE(theirs.IsElementBF("roger@acme.com"));
  EXPECT_TRUE(theirs.IsElementBF("duffy@acme.com"));
  // Choice 1 makes the document's 1000 bits.
  std::istringstream create("1\n");
  std::cin.clear();
  std::cin.rdbuf(create.rdbuf());
  EXPECT_EQ(Bloom({"--text"}), 0);
  EXPECT_EQ(FileText(), std::string(1000, '0'));
  EXPECT_FALSE(theirs.IsElementBF("roger@acme.com"));
  std::cin.clear();
  std::cin.rdbuf(keyboard);
}

// std::hash of libstdc++: a file has to be good on the next machine too.
TEST_F(BloomText, HashIsTheOneOfLibstdcxx) {
  ASSERT_EQ(Bloom({"create", "bloom.txt", "--text"}), 0);
  ASSERT_EQ(Bloom({"add", "bloom.txt", "duffy@acme.com"}), 0);
  const std::string text = FileText();
  std::set<uint64_t> set;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '1') set.insert(text.size() - 1 - i);
  }
  EXPECT_EQ(set, (std::set<uint64_t>{415, 229, 600}));
}

TEST_F(BloomText, PositionsAreTheThreeOfTheDocument) {
  const auto places = TextPositions(0xfedcba9876543210, 1000);
  EXPECT_EQ(places[0], 0xfedcba9876543210 % 1000);
  EXPECT_EQ(places[1], 0xfedcba987654 % 1000);
  EXPECT_EQ(places[2], 0xfedcba98 % 1000);
}

TEST_F(BloomText, DamagedFilesAreRefusedAndLeftAlone) {
  std::string bad(1000, '0');
  bad[500] = '2';
  for (const std::string& text : Words{bad, "0\n0", "01 ", "1\n\n", "0\r", "\n", ""}) {
    WriteText(text);
    testing::internal::CaptureStderr();
    EXPECT_EQ(Bloom({"add", "bloom.txt", "x"}), 2) << '"' << text << '"';
    EXPECT_NE(testing::internal::GetCapturedStderr().find("bloom.txt: "), std::string::npos);
    EXPECT_EQ(FileText(), text);
  }
}

TEST_F(BloomText, LineEndBehindTheBitsIsPassedOver) {
  for (const std::string end : {"\n", "\r\n"}) {
    WriteText(std::string(100, '0') + end);
    ASSERT_EQ(Bloom({"add", "bloom.txt", "x"}), 0);
    EXPECT_EQ(FileText().size(), 100U);
    EXPECT_EQ(Bloom({"check", "bloom.txt", "x"}), 0);
  }
}

TEST_F(BloomText, OptionsThatDoNotFitAreRefused) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Bloom({"create", "f", "--text", "--hashes", "4"}), 2);
  EXPECT_EQ(Bloom({"create", "f", "--text", "--items", "10", "--rate", "0.1"}), 2);
  EXPECT_EQ(Bloom({"create", "f", "--text", "--bits", "99999999999"}), 2);
  EXPECT_FALSE(std::filesystem::exists("f"));
  EXPECT_EQ(Bloom({"create", "f"}), 0);
  EXPECT_EQ(Bloom({"check", "--text", "f", "x"}), 2);
  EXPECT_EQ(Bloom({"check", "f", "--text"}), 1);  // behind the file it is a value
  const std::string complaints = testing::internal::GetCapturedStderr();
  EXPECT_NE(complaints.find("f: the Bloom filter is not in text form"), std::string::npos);
}

TEST_F(BloomText, NumberOfValuesIsEstimated) {
  ASSERT_EQ(Bloom({"create", "bloom.txt", "--text", "--bits", "100000"}), 0);
  Words add = {"add", "bloom.txt"};
  for (int i = 0; i < 5000; ++i) add.push_back("value " + std::to_string(i));
  ASSERT_EQ(Bloom(add), 0);
  const auto filter = ReadBloomFile("bloom.txt");
  ASSERT_TRUE(filter.ok());
  const FileFilter::Numbers numbers = filter.value()->numbers();
  EXPECT_FALSE(numbers.items_known);
  EXPECT_NEAR(static_cast<double>(numbers.items), 5000, 150);
  // A full one has no estimate without end.
  WriteText("1111");
  EXPECT_LT(ReadBloomFile("bloom.txt").value()->numbers().items, 10U);
}

TEST_F(BloomText, CreateWithoutASizeMakesTheDocumentsThousandBits) {
  std::string out;
  EXPECT_EQ(Bloom({"create", "f"}, &out), 0);
  EXPECT_EQ(out, "f: 1000 bits, 3 hashes\n");
  EXPECT_EQ(Bloom({"create", "g", "--hashes", "5"}, &out), 0);
  EXPECT_EQ(out, "g: 1000 bits, 5 hashes\n");
}

TEST_F(BloomText, MenuReportsErrorsOnStandardError) {
  std::istringstream typed("2\nduffy\n3\nduffy\n4\n");
  std::streambuf* const keyboard = std::cin.rdbuf(typed.rdbuf());
  testing::internal::CaptureStderr();
  std::string out;
  EXPECT_EQ(Bloom({}, &out), 0);
  const std::string complaints = testing::internal::GetCapturedStderr();
  std::cin.clear();
  std::cin.rdbuf(keyboard);
  EXPECT_NE(complaints.find("cannot be changed: bloom.txt"), std::string::npos) << complaints;
  EXPECT_NE(complaints.find("cannot be opened: bloom.txt"), std::string::npos) << complaints;
  EXPECT_EQ(out.find("cannot"), std::string::npos) << out;
}

// Figure 3 of the document: duffy@acme.com has the indices <9, 6, 2>, of which 6 is set already.
TEST(BloomExplain, DrawsTheDocumentsExample) {
  const std::set<uint64_t> set = {6};
  const auto is_set = [&set](uint64_t bit) { return set.contains(bit); };
  EXPECT_EQ(ExplainBits(10, {9, 6, 2}, is_set),
            "  H0 = 9, H1 = 6, H2 = 2\n"
            "  check: no, bits 2 and 9 are 0\n"
            "  add: sets bits 2 and 9\n"
            "\n"
            "  index     0  1  2  3  4  5  6  7  8  9\n"
            "  before    0  0  0  0  0  0  1  0  0  0\n"
            "                  ^           ^        ^\n"
            "                 H2          H1       H0\n"
            "  after     0  0  1  0  0  0  1  0  0  1\n"
            "                  +                    +\n");
}

// Figure 2 has both answers: after figure 3 the same question is answered by maybe.
TEST(BloomExplain, AnswersMaybeWhenAllBitsAreSet) {
  const std::set<uint64_t> set = {2, 6, 9};
  const auto is_set = [&set](uint64_t bit) { return set.contains(bit); };
  const std::string text = ExplainBits(10, {9, 6, 2}, is_set);
  EXPECT_NE(text.find("check: maybe, bits 2, 6 and 9 are 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("add: changes nothing\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('+'), std::string::npos) << text;
}

TEST(BloomExplain, HashesThatMeetStandBelowEachOther) {
  const auto nothing = [](uint64_t) { return false; };
  EXPECT_EQ(DrawBits(4, {1, 3, 1}, nothing),
            "  index     0  1  2  3\n"
            "  before    0  0  0  0\n"
            "               ^     ^\n"
            "              H0    H1\n"
            "              H2\n"
            "  after     0  1  0  1\n"
            "               +     +\n");
}

TEST(BloomExplain, LargeFiltersShowTheRowsThatMatter) {
  const auto nothing = [](uint64_t) { return false; };
  const std::string text = DrawBits(1000, {5, 999, 6}, nothing);
  EXPECT_NE(text.find("  index      0   1   2"), std::string::npos) << text;
  EXPECT_NE(text.find(" 992 993 994 995 996 997 998 999\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" 16 "), std::string::npos) << text;
}

// What it draws is what happens: adding sets these bits and no others, in either form.
TEST(BloomExplain, PositionsAreTheBitsThatAreSet) {
  base::Rng rng(7);
  for (const BloomForm form : {BloomForm::kSealed, BloomForm::kText}) {
    // The largest one comes in several chunks.
    for (const uint64_t bits : {1U, 10U, 1000U, 70'000'000U}) {
      for (const uint32_t hashes : {kTextHashes, 7U}) {
        if (form == BloomForm::kText && hashes != kTextHashes) continue;
        if (bits > 1000 && hashes == kTextHashes) continue;
        auto filter = MakeFileFilter(form, bits, hashes);
        ASSERT_TRUE(filter.ok());
        std::set<uint64_t> set;
        for (const std::string& word : RandomWords(&rng, 3)) {
          const std::vector<uint64_t> positions = (*filter)->Positions(word);
          ASSERT_EQ(positions.size(), hashes);
          set.insert(positions.begin(), positions.end());
          (*filter)->Add(word);
        }
        const auto is_set = (*filter)->Bits();
        uint64_t found = 0;
        for (uint64_t bit = 0; bit < bits; ++bit) found += is_set(bit) ? 1 : 0;
        EXPECT_EQ(found, set.size());
        for (const uint64_t bit : set) EXPECT_TRUE(is_set(bit)) << bit;
      }
    }
  }
}

using BloomExplainFile = InFolder;

TEST_F(BloomExplainFile, LooksAndDoesNotTouch) {
  ASSERT_EQ(Bloom({"create", "f", "--bits", "50"}), 0);
  ASSERT_EQ(Bloom({"add", "f", "roger@acme.com"}), 0);
  const std::string before = FileText("f");
  std::string out;
  EXPECT_EQ(Bloom({"explain", "--file", "f", "roger@acme.com", "--", "--bits"}, &out), 0);
  EXPECT_NE(out.find("m = 50 bits, k = 3 hashes"), std::string::npos) << out;
  EXPECT_NE(out.find("\nroger@acme.com\n"), std::string::npos) << out;
  EXPECT_NE(out.find("check: maybe, "), std::string::npos) << out;
  EXPECT_NE(out.find("\n--bits\n"), std::string::npos) << out;
  EXPECT_EQ(FileText("f"), before);
  // From an empty filter each value is added for the next one.
  EXPECT_EQ(Bloom({"explain", "a", "a"}, &out), 0);
  const size_t no = out.find("check: no, ");
  ASSERT_NE(no, std::string::npos) << out;
  EXPECT_GT(out.find("check: maybe, "), no);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Bloom({"explain"}), 2);
  EXPECT_EQ(Bloom({"explain", "--file", "f", "--bits", "10", "x"}), 2);
  EXPECT_EQ(Bloom({"explain", "--file", "none", "x"}), 2);
  EXPECT_FALSE(testing::internal::GetCapturedStderr().empty());
}

TEST(BloomHelp, IsEachSubcommandsOwn) {
  std::set<std::string> texts;
  for (const std::string verb : {"create", "add", "check", "info", "explain", "size"}) {
    std::string out;
    EXPECT_EQ(Bloom({verb, "--help"}, &out), 0);
    EXPECT_TRUE(out.starts_with("Usage: sava bloom " + verb)) << out;
    const size_t example = out.find("\nExample");
    ASSERT_NE(example, std::string::npos) << verb;
    EXPECT_NE(out.find("\n  sava bloom " + verb, example), std::string::npos) << verb;
    texts.insert(out);
  }
  EXPECT_EQ(texts.size(), 6U);
}

}  // namespace
}  // namespace sava::cli
