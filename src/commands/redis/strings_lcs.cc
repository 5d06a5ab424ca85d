// LCS: the longest common subsequence of two strings, by the classic table of prefix lengths.
//
// Cell (i, j) of the table is the length of the longest subsequence common to the first i bytes of
// a and the first j bytes of b. Walking back from the last cell finds the subsequence and the runs
// of bytes it is made of, last run first. Time and space are O(|a| * |b|); the space is limited by
// proto-max-bulk-len.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "commands/redis/strings.h"

namespace sava::commands::strings {

namespace {

struct LcsOptions {
  bool length_only = false;
  bool indexes = false;
  bool with_match_length = false;
  int64_t min_match_length = 0;
};

bool ParseLcsOptions(Context& context, LcsOptions* options) {
  for (size_t i = 3; i < context.argc(); ++i) {
    if (context.ArgIs(i, "IDX")) {
      options->indexes = true;
    } else if (context.ArgIs(i, "LEN")) {
      options->length_only = true;
    } else if (context.ArgIs(i, "WITHMATCHLEN")) {
      options->with_match_length = true;
    } else if (context.ArgIs(i, "MINMATCHLEN") && i + 1 < context.argc()) {
      if (!context.IntArg(++i, &options->min_match_length)) return false;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  if (options->indexes && options->length_only) {
    context.Error("ERR If you want both the length and indexes, please just use IDX.");
    return false;
  }
  return true;
}

class LcsTable {
 public:
  // Bytes the table of two strings takes; REQUIRES: both lengths fit in 32 bits.
  static uint64_t Memory(std::string_view a, std::string_view b) {
    uint64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow((a.size() + 1) * sizeof(uint32_t),
                                                 static_cast<uint64_t>(b.size()) + 1, &bytes);
    return overflow ? std::numeric_limits<uint64_t>::max() : bytes;
  }

  LcsTable(std::string_view a, std::string_view b)
      : a_(a),
        b_(b),
        width_(b.size() + 1),
        cells_(new (std::nothrow) uint32_t[(a.size() + 1) * width_]) {}

  // False when there was no memory; nothing else may be called then.
  bool ok() const { return cells_ != nullptr; }
  uint32_t length() const { return At(a_.size(), b_.size()); }

  void Fill() {
    std::fill_n(cells_.get(), width_, 0);
    for (size_t i = 1; i <= a_.size(); ++i) {
      const uint32_t* above = cells_.get() + (i - 1) * width_;
      uint32_t* row = cells_.get() + i * width_;
      row[0] = 0;
      for (size_t j = 1; j <= b_.size(); ++j) {
        row[j] = a_[i - 1] == b_[j - 1] ? above[j - 1] + 1 : std::max(above[j], row[j - 1]);
      }
    }
  }

  // Calls run(at_a, at_b, length) for every run of equal bytes, last first. Of equally long ways
  // the one that gives up bytes of b first is taken.
  template <typename Run>
  void ForEachRun(const Run& run) const {
    size_t i = a_.size();
    size_t j = b_.size();
    size_t length = 0;
    while (i > 0 && j > 0) {
      if (a_[i - 1] == b_[j - 1]) {
        --i;
        --j;
        ++length;
        continue;
      }
      if (length != 0) run(i, j, length);
      length = 0;
      if (At(i - 1, j) > At(i, j - 1)) {
        --i;
      } else {
        --j;
      }
    }
    if (length != 0) run(i, j, length);
  }

 private:
  uint32_t At(size_t i, size_t j) const { return cells_[i * width_ + j]; }

  std::string_view a_;
  std::string_view b_;
  size_t width_;
  std::unique_ptr<uint32_t[]> cells_;
};

void ReplyRange(protocol::Reply& reply, size_t at, size_t length) {
  reply.Array(2);
  reply.Int(static_cast<int64_t>(at));
  reply.Int(static_cast<int64_t>(at + length - 1));
}

void ReplyIndexes(protocol::Reply& reply, const LcsTable& table, const LcsOptions& options) {
  reply.Map(2);
  reply.Bulk("matches");
  const size_t mark = reply.Mark();
  int64_t matches = 0;
  table.ForEachRun([&](size_t at_a, size_t at_b, size_t length) {
    if (static_cast<int64_t>(length) < options.min_match_length) return;
    reply.Array(options.with_match_length ? 3 : 2);
    ReplyRange(reply, at_a, length);
    ReplyRange(reply, at_b, length);
    if (options.with_match_length) reply.Int(static_cast<int64_t>(length));
    ++matches;
  });
  reply.ArrayAt(mark, matches);
  reply.Bulk("len");
  reply.Int(table.length());
}

std::string CommonBytes(const LcsTable& table, std::string_view a) {
  std::string common(table.length(), '\0');
  size_t at = common.size();
  table.ForEachRun([&](size_t at_a, size_t, size_t length) {
    at -= length;
    a.copy(common.data() + at, length, at_a);
  });
  return common;
}

}  // namespace

void Lcs(Context& context) {
  const Value value_a = context.Find(context.arg(1), Access::kRead);
  const Value value_b = context.Find(context.arg(2), Access::kRead);
  if ((value_a && !value_a.is_string()) || (value_b && !value_b.is_string())) {
    context.Error("ERR The specified keys must contain string values");
    return;
  }
  LcsOptions options;
  if (!ParseLcsOptions(context, &options)) return;

  NumberText scratch_a;
  NumberText scratch_b;
  const std::string_view a = StringBytes(value_a, &scratch_a);
  const std::string_view b = StringBytes(value_b, &scratch_b);
  constexpr size_t kLongest = std::numeric_limits<uint32_t>::max() - 1;
  if (a.size() >= kLongest || b.size() >= kLongest) {
    context.Error("ERR String too long for LCS");
    return;
  }
  if (LcsTable::Memory(a, b) > static_cast<uint64_t>(context.max_string_size())) {
    context.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    return;
  }
  LcsTable table(a, b);
  if (!table.ok()) {
    context.Error("ERR Insufficient memory, failed allocating transient memory for LCS");
    return;
  }
  table.Fill();
  if (options.indexes) {
    ReplyIndexes(context.reply(), table, options);
  } else if (options.length_only) {
    context.reply().Int(table.length());
  } else {
    context.reply().Bulk(CommonBytes(table, a));
  }
}

}  // namespace sava::commands::strings
