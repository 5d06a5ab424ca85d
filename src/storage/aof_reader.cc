#include "storage/aof_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/text.h"

namespace sava::storage {

namespace {

constexpr uint64_t kMaxWords = INT32_MAX;
// More than a record of the journal can hold.
constexpr uint64_t kMaxBulk = UINT32_MAX;
constexpr uint64_t kProgressBytes = 1 << 20;

class Reader {
 public:
  Reader(std::string_view file, const AofReceiver& receive,
         const std::function<void(uint64_t)>& progress)
      : begin_(file.data()),
        p_(file.data()),
        end_(file.data() + file.size()),
        receive_(receive),
        progress_(progress) {}

  AofEnd Run() {
    while (Next()) {
      bool fine = true;
      if (words_.size() == 1 && base::EqualsNoCase(words_[0], "MULTI")) {
        fine = Transaction();
      } else if (words_.size() == 1 && base::EqualsNoCase(words_[0], "EXEC")) {
        fine = Fail(AofEnd::Kind::kCorrupt, start_, "EXEC without MULTI");
      } else {
        fine = Give(false, false);
      }
      if (!fine) break;
      result_.good = Offset(p_);
      Progress();
    }
    if (result_.kind == AofEnd::Kind::kWhole) result_.offset = result_.good;
    if (result_.kind == AofEnd::Kind::kCorrupt && ZerosOfACrash()) {
      result_.kind = AofEnd::Kind::kTruncated;
      result_.text = "zeros where a crash has cut the file off";
    }
    return std::move(result_);
  }

 private:
  uint64_t Offset(const char* at) const { return static_cast<uint64_t>(at - begin_); }

  bool Fail(AofEnd::Kind kind, const char* at, std::string text) {
    result_.kind = kind;
    result_.offset = Offset(at);
    result_.text = std::move(text);
    bad_ = at;
    return false;
  }
  bool Cut() { return Fail(AofEnd::Kind::kTruncated, start_, "the file ends within a command"); }

  // Reads the next command into words_; false at the end of the file, or when something is wrong.
  bool Next() {
    while (p_ != end_ && *p_ == '#') {
      start_ = p_;
      const void* line_end = memchr(p_, '\n', static_cast<size_t>(end_ - p_));
      if (line_end == nullptr) return Cut();
      const std::string_view line(p_, static_cast<size_t>(static_cast<const char*>(line_end) - p_));
      if (const size_t zero = line.find('\0'); zero != std::string_view::npos) {
        return Fail(AofEnd::Kind::kCorrupt, p_ + zero, "a zero in a line of text");
      }
      if (line.starts_with(kAofSyncedMark)) marked_ = true;
      p_ = static_cast<const char*>(line_end) + 1;
      if (!in_transaction_) result_.good = Offset(p_);
    }
    start_ = p_;
    if (p_ == end_) return false;
    uint64_t count;
    if (!Number('*', kMaxWords, "arguments", &count)) return false;
    if (count == 0) return Fail(AofEnd::Kind::kCorrupt, start_, "a command without a name");
    words_.clear();
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t size;
      if (!Number('$', kMaxBulk, "bytes of an argument", &size)) return false;
      const auto left = static_cast<uint64_t>(end_ - p_);
      if (left < size + 2) {
        if (left > size && p_[size] != '\r') {
          return Fail(AofEnd::Kind::kCorrupt, p_ + size, "an argument does not end with CR LF");
        }
        return Cut();
      }
      if (p_[size] != '\r' || p_[size + 1] != '\n') {
        return Fail(AofEnd::Kind::kCorrupt, p_ + size + (p_[size] == '\r' ? 1 : 0),
                    "an argument does not end with CR LF");
      }
      words_.emplace_back(p_, size);
      p_ += size + 2;
    }
    return true;
  }

  // `mark`, decimal digits, CR LF.
  bool Number(char mark, uint64_t limit, const char* what, uint64_t* out) {
    const char* p = p_;
    if (p == end_) return Cut();
    if (*p != mark) {
      return Fail(AofEnd::Kind::kCorrupt, p, fmt::format("expected '{}'", mark));
    }
    const char* const digits = ++p;
    uint64_t value = 0;
    for (; p != end_; ++p) {
      const unsigned digit = static_cast<unsigned char>(*p) - '0';
      if (digit > 9) break;
      value = value * 10 + digit;
      if (value > limit || (p != digits && *digits == '0')) {
        return Fail(AofEnd::Kind::kCorrupt, p_, fmt::format("not a number of {}", what));
      }
    }
    if (p == end_) return Cut();
    if (p == digits || *p != '\r') {
      return Fail(AofEnd::Kind::kCorrupt, p, fmt::format("not a number of {}", what));
    }
    if (++p == end_) return Cut();
    if (*p != '\n') return Fail(AofEnd::Kind::kCorrupt, p, "CR without LF");
    p_ = p + 1;
    *out = value;
    return true;
  }

  // The words are MULTI: looks whether its EXEC is there, then goes back and hands on.
  bool Transaction() {
    const char* const multi = start_;
    const char* const first = p_;
    uint64_t commands = 0;
    in_transaction_ = true;
    while (true) {
      if (!Next()) {
        if (result_.kind == AofEnd::Kind::kTruncated || result_.kind == AofEnd::Kind::kWhole) {
          return Fail(AofEnd::Kind::kTruncated, multi, "the file ends within a transaction");
        }
        return false;
      }
      if (words_.size() == 1 && base::EqualsNoCase(words_[0], "EXEC")) break;
      if (words_.size() == 1 && base::EqualsNoCase(words_[0], "MULTI")) {
        return Fail(AofEnd::Kind::kCorrupt, start_, "MULTI within a transaction");
      }
      ++commands;
    }
    const char* const after = p_;
    p_ = first;
    for (uint64_t i = 0; i < commands; ++i) {
      if (!Next() || !Give(true, i + 1 == commands)) return false;
    }
    p_ = after;
    in_transaction_ = false;
    return true;
  }

  bool Give(bool in_transaction, bool last) {
    const base::Status status = receive_({words_, Offset(start_), in_transaction, last});
    if (!status) return Fail(AofEnd::Kind::kRefused, start_, status.error());
    ++result_.commands;
    return true;
  }

  void Progress() {
    if (!progress_ || result_.good - told_ < kProgressBytes) return;
    told_ = result_.good;
    progress_(told_);
  }

  bool ZerosOfACrash() const {
    if (bad_ == end_ || *bad_ != '\0') return false;
    std::string_view rest(bad_, static_cast<size_t>(end_ - bad_));
    if (rest.find_first_not_of('\0') == std::string_view::npos) return true;
    if (!marked_) return false;
    // A line that says more was synced than lies before the zeros: they are not a crash's.
    for (size_t at = rest.find(kAofSyncedMark); at != std::string_view::npos;
         at = rest.find(kAofSyncedMark, at + 1)) {
      if (at == 0 || (rest[at - 1] != '\n' && rest[at - 1] != '\0')) continue;
      const std::string_view number = rest.substr(at + kAofSyncedMark.size(), 20);
      uint64_t synced;
      if (base::ParseUint(number.substr(0, number.find('\r')), &synced) && synced > Offset(bad_) &&
          synced <= Offset(bad_) + at) {
        return false;
      }
    }
    return true;
  }

  const char* const begin_;
  const char* p_;
  const char* const end_;
  const AofReceiver& receive_;
  const std::function<void(uint64_t)>& progress_;
  const char* start_ = nullptr;  // of the command at hand
  const char* bad_ = nullptr;    // where what is wrong was seen
  bool in_transaction_ = false;
  bool marked_ = false;  // a line said what was synced
  uint64_t told_ = 0;
  std::vector<std::string_view> words_;
  AofEnd result_;
};

}  // namespace

std::string AofSyncedLine(uint64_t size) { return fmt::format("{}{}\r\n", kAofSyncedMark, size); }

std::string AofAfter::Line() const {
  return fmt::format("{}{}:{}\r\n", kAofAfterMark, sequence, size);
}

AofAfter AofAfter::Of(std::string_view file) {
  const std::string begin = AofSyncedLine(0) + std::string(kAofAfterMark);
  if (!file.starts_with(begin)) return {};
  std::string_view line = file.substr(begin.size());
  line = line.substr(0, line.find("\r\n"));
  const size_t colon = line.find(':');
  AofAfter after;
  if (line.size() == file.size() - begin.size() || colon == std::string_view::npos ||
      !base::ParseUint(line.substr(0, colon), &after.sequence) ||
      !base::ParseUint(line.substr(colon + 1), &after.size)) {
    return {};
  }
  return after;
}

bool AofProvesSync(std::string_view file) {
  const std::string first = AofSyncedLine(0);
  if (file.empty()) return false;
  if (!file.starts_with(first)) return true;
  // Without the line, or what a crash may have left of it, it was begun after a sync.
  std::string_view second = file.substr(first.size(), kAofAfterMark.size());
  second = second.substr(0, second.find('\0'));
  if (!kAofAfterMark.starts_with(second)) return true;
  for (size_t at = file.find(kAofSyncedMark, first.size()); at != std::string_view::npos;
       at = file.find(kAofSyncedMark, at + 1)) {
    if (file[at - 1] != '\n' && file[at - 1] != '\0') continue;
    const std::string_view number = file.substr(at + kAofSyncedMark.size(), 20);
    uint64_t synced;
    if (base::ParseUint(number.substr(0, number.find('\r')), &synced) && synced != 0 &&
        synced <= at) {
      return true;
    }
  }
  return false;
}

AofEnd ReadAof(std::string_view file, const AofReceiver& receive,
               const std::function<void(uint64_t)>& progress) {
  return Reader(file, receive, progress).Run();
}

}  // namespace sava::storage
