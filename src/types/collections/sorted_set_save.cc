// Saving and loading of SortedSet: Redis's RDB types 17 (listpack) and 5 (members with binary
// doubles), and those of older files, 3 (scores as text) and 12 (ziplist).
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/text.h"
#include "types/collections/packed_forms.h"
#include "types/collections/sorted_set.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbZset = 3;
constexpr uint8_t kRdbZset2 = 5;
constexpr uint8_t kRdbZsetZiplist = 12;
constexpr uint8_t kRdbZsetListpack = 17;
constexpr uint8_t kZsetRdbTypes[] = {kRdbZset2, kRdbZset, kRdbZsetZiplist, kRdbZsetListpack};

// The lengths that stand for what has no digits, in type 3.
constexpr uint8_t kTextNan = 253;
constexpr uint8_t kTextInf = 254;
constexpr uint8_t kTextNegativeInf = 255;

// Whole numbers that a listpack holds as such: -0 is none.
bool IsWhole(double score, int64_t* out) {
  constexpr double kMost = 4611686018427387904.0;  // 2^62
  if (!(score >= -kMost && score <= kMost)) return false;
  *out = static_cast<int64_t>(score);
  return static_cast<double>(*out) == score && (*out != 0 || !std::signbit(score));
}

double ReadTextScore(Reader& in) {
  const uint8_t length = in.Byte();
  if (length == kTextInf) return HUGE_VAL;
  if (length == kTextNegativeInf) return -HUGE_VAL;
  double score = 0;
  if (length == kTextNan || !base::ParseDouble(in.Raw(length), &score)) in.Fail();
  return score;
}

// Gathers the pairs of a packed form: member, score, member, score …
struct PairTaker {
  std::string member;
  bool has_member = false;

  // 1: the pair is complete, 0: not yet, -1: the score is none.
  int Take(const PackedItem& item, double* score) {
    if (!has_member) {
      PackedItem::Scratch digits;
      member = item.Text(digits);
      has_member = true;
      return 0;
    }
    has_member = false;
    if (item.is_number) {
      *score = static_cast<double>(item.number);
      return 1;
    }
    return base::ParseDouble(item.text, score) ? 1 : -1;
  }
};

}  // namespace

const TypeInfo& SortedSet::Type() {
  static const TypeInfo kInfo{.name = "zset",
                              .rdb_types = kZsetRdbTypes,
                              .rdb_type_count = std::size(kZsetRdbTypes),
                              .load = &SortedSet::Load,
                              .digest_number = 3};
  return kInfo;
}

// The digits are the shortest that read back as the same number; their arrangement is Redis 7.2's:
// plain when the last digit stands not far from the point, else with an exponent.
std::string ScoreText(double score) {
  int64_t whole = 0;
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  if (score == 0) return std::signbit(score) ? "-0" : "0";
  if (IsWhole(score, &whole)) return base::IntText(whole);
  // d.ddde+xx
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, score, std::chars_format::scientific).ptr;
  std::string_view form(text, static_cast<size_t>(end - text));
  std::string out;
  if (form.front() == '-') {
    out = "-";
    form.remove_prefix(1);
  }
  const size_t mark = form.find('e');
  int exponent = 0;
  const char* digits_end = form.data() + form.size();
  std::from_chars(form.data() + mark + (form[mark + 1] == '+' ? 2 : 1), digits_end, exponent);
  std::string digits(form.substr(0, 1));
  if (mark > 2) digits += form.substr(2, mark - 2);
  const int count = static_cast<int>(digits.size());
  const int last = exponent - count + 1;  // the power of ten of the last digit
  if (last >= 0 && std::abs(exponent) < count + 7) {
    return out + digits + std::string(static_cast<size_t>(last), '0');
  }
  if (last < 0 && (last > -7 || std::abs(exponent) < 4)) {
    const int before = count + last;
    if (before <= 0) return out + "0." + std::string(static_cast<size_t>(-before), '0') + digits;
    return out + digits.substr(0, static_cast<size_t>(before)) + "." +
           digits.substr(static_cast<size_t>(before));
  }
  out += digits[0];
  if (count > 1) out += "." + digits.substr(1);
  return out + (exponent < 0 ? "e-" : "e+") + base::IntText(std::abs(exponent));
}

uint8_t SortedSet::rdb_type() const { return skiplist() || large() ? kRdbZset2 : kRdbZsetListpack; }

void SortedSet::Save(Writer& out) const {
  if (rdb_type() == kRdbZsetListpack) {
    ListpackWriter packed;
    for (Iterator it = At(0); it; it.Next()) {
      packed.Add(it.member());
      int64_t whole = 0;
      if (IsWhole(it.score(), &whole)) {
        packed.AddInt(whole);
      } else {
        packed.Add(ScoreText(it.score()));
      }
    }
    out.String(packed.Finish());
    return;
  }
  out.Length(size());
  // From the highest score down, as Redis does: its loader then inserts at the head.
  for (Iterator it = size() == 0 ? Iterator() : At(size() - 1); it; it.Previous()) {
    out.String(it.member());
    out.Double(it.score());
  }
}

void SortedSet::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    out.Length(size());
  }
  tree()->BeginCut(sink, head);
}

bool SortedSet::SavePieces(size_t budget) {
  if (!is_tree()) return true;
  if (!tree()->SavePieces(budget)) return false;
  ShrinkIfPossible();
  return true;
}

void SortedSet::AbortCut() {
  if (!is_tree()) return;
  tree()->AbortCut();
  ShrinkIfPossible();
}

bool SortedSet::LoadOne(std::string_view member, double score) {
  if (std::isnan(score) || Score(member)) return false;
  if (is_tree()) {
    tree()->Insert(tree()->Aim(score, member), score, member);
  } else {
    InsertSmall(member, score);
  }
  return true;
}

bool SortedSet::LoadPairs(uint8_t rdb_type, Reader& in) {
  const uint64_t count = in.Count(rdb_type == kRdbZset2 ? 9 : 2);
  std::string scratch;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view member = in.StringView(&scratch);
    const double score = rdb_type == kRdbZset2 ? in.Double() : ReadTextScore(in);
    if (!in.ok()) return false;
    if (!LoadOne(member, score)) return in.Fail("scores are numbers, no member twice");
  }
  if (count == 0) in.Fail("a sorted set has members");
  if (!in.ok()) return false;
  ChooseEncoding(in.limits());
  return true;
}

bool SortedSet::LoadPacked(uint8_t rdb_type, Reader& in) {
  std::string scratch;
  const std::string_view bytes = in.StringView(&scratch);
  if (!in.ok()) return false;
  PairTaker pair;
  const auto take = [&](const PackedItem& item) {
    double score = 0;
    const int taken = pair.Take(item, &score);
    return taken == 0 || (taken > 0 && LoadOne(pair.member, score));
  };
  const bool whole =
      rdb_type == kRdbZsetListpack ? ForEachListpack(bytes, take) : ForEachZiplist(bytes, take);
  if (!whole || pair.has_member) return in.Fail("the listpack or ziplist of a sorted set");
  if (size() == 0) return in.Fail("a sorted set has members");
  set_skiplist(size() > static_cast<size_t>(in.limits().zset_max_listpack_entries));
  return true;
}

std::unique_ptr<Object> SortedSet::Load(uint8_t rdb_type, Reader& in) {
  auto set = std::make_unique<SortedSet>();
  const bool packed = rdb_type == kRdbZsetListpack || rdb_type == kRdbZsetZiplist;
  const bool good = packed ? set->LoadPacked(rdb_type, in) : set->LoadPairs(rdb_type, in);
  return good ? std::move(set) : nullptr;
}

}  // namespace sava::types
