// The client's RESP2/RESP3 parser; see the header for its guarantees.
#include "cli/client_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace sava::cli {
namespace {

// Servers write lengths with base-10 digits and at most a leading '-'.
bool ReadNumber(std::string_view line, int64_t* value) {
  const char* end = line.data() + line.size();
  const auto [stop, code] = std::from_chars(line.data(), end, *value);
  return code == std::errc{} && stop == end;
}

bool IsAggregateMarker(char marker) {
  return marker == '*' || marker == '%' || marker == '~' || marker == '>' || marker == '|';
}

bool IsBulkMarker(char marker) { return marker == '$' || marker == '!' || marker == '='; }

ReplyType BulkType(char marker) {
  switch (marker) {
    case '!':
      return ReplyType::kError;
    case '=':
      return ReplyType::kVerbatim;
    default:
      return ReplyType::kString;
  }
}

ReplyType AggregateType(char marker) {
  switch (marker) {
    case '%':
    case '|':
      return ReplyType::kMap;
    case '~':
      return ReplyType::kSet;
    case '>':
      return ReplyType::kPush;
    default:
      return ReplyType::kArray;
  }
}

}  // namespace

void ReplyParser::Feed(std::string_view bytes) {
  Compact();
  buffer_.append(bytes);
}

ReplyParser::Status ReplyParser::Next(Reply* reply) {
  if (!error_.empty()) return Status::kError;
  while (true) {
    Reply scalar;
    switch (ReadElement(&scalar)) {
      case Step::kNeedMore:
        return Status::kNeedMore;
      case Step::kError:
        return Status::kError;
      case Step::kOpened:
        break;
      case Step::kScalar:
        if (Close(std::move(scalar), reply)) return Status::kReply;
        break;
    }
  }
}

// Puts a finished value into the innermost open aggregate, and that one into its parent if it is
// full now, and so on. True when a whole reply is finished and stands in `reply`.
bool ReplyParser::Close(Reply done, Reply* reply) {
  while (true) {
    if (open_.empty()) {
      *reply = std::move(done);
      return true;
    }
    Open& top = open_.back();
    top.reply.elements.push_back(std::move(done));
    if (--top.missing > 0) return false;
    done = std::move(top.reply);
    const bool is_attribute = top.is_attribute;
    open_.pop_back();
    if (is_attribute) {
      attributes_ = std::make_unique<Reply>(std::move(done));
      return false;
    }
  }
}

ReplyParser::Step ReplyParser::ReadElement(Reply* scalar) {
  if (bulk_length_ >= 0) return ReadBulk(bulk_marker_, {}, scalar);
  std::string_view line;
  if (!TakeLine(&line)) return error_.empty() ? Step::kNeedMore : Step::kError;
  if (line.empty()) return Fail("an empty line where a reply should begin");
  const char marker = line.front();
  line.remove_prefix(1);
  if (IsAggregateMarker(marker)) return OpenAggregate(marker, line, scalar);
  scalar->attributes = std::move(attributes_);
  if (IsBulkMarker(marker)) return ReadBulk(marker, line, scalar);
  return ReadScalarLine(marker, line, scalar);
}

ReplyParser::Step ReplyParser::ReadScalarLine(char marker, std::string_view line, Reply* scalar) {
  switch (marker) {
    case '+':
      scalar->type = ReplyType::kStatus;
      break;
    case '-':
      scalar->type = ReplyType::kError;
      break;
    case ':':
      scalar->type = ReplyType::kInteger;
      if (!ReadNumber(line, &scalar->integer)) return Fail("an integer reply that is no integer");
      return Step::kScalar;
    case ',':
      scalar->type = ReplyType::kDouble;
      break;
    case '(':
      scalar->type = ReplyType::kBigNumber;
      break;
    case '_':
      scalar->type = ReplyType::kNil;
      return Step::kScalar;
    case '#':
      if (line != "t" && line != "f") return Fail("a boolean reply that is neither t nor f");
      scalar->type = ReplyType::kBool;
      scalar->integer = line == "t" ? 1 : 0;
      return Step::kScalar;
    default:
      return Fail(fmt::format("0x{:02x} as the type of a reply", static_cast<uint8_t>(marker)));
  }
  scalar->text = line;
  return Step::kScalar;
}

// Called with the header line first, then with an empty one until the bytes are there.
ReplyParser::Step ReplyParser::ReadBulk(char marker, std::string_view line, Reply* scalar) {
  if (bulk_length_ < 0) {
    int64_t length = 0;
    if (!ReadNumber(line, &length) || length < -1 || length > kMaxBulkBytes) {
      return Fail("a string reply of impossible length");
    }
    if (length == -1) {
      scalar->type = ReplyType::kNil;
      return Step::kScalar;
    }
    bulk_length_ = length;
    bulk_marker_ = marker;
    attributes_ = std::move(scalar->attributes);
  }
  const auto length = static_cast<size_t>(bulk_length_);
  if (buffer_.size() - position_ < length + 2) return Step::kNeedMore;
  if (buffer_[position_ + length] != '\r' || buffer_[position_ + length + 1] != '\n') {
    return Fail("a string reply that does not end where it said");
  }
  std::string_view text(buffer_.data() + position_, length);
  if (marker == '=' && text.size() >= 4 && text[3] == ':') text.remove_prefix(4);
  scalar->type = BulkType(marker);
  scalar->text = text;
  scalar->attributes = std::move(attributes_);
  position_ += length + 2;
  scanned_ = position_;
  bulk_length_ = -1;
  return Step::kScalar;
}

ReplyParser::Step ReplyParser::OpenAggregate(char marker, std::string_view line, Reply* scalar) {
  int64_t count = 0;
  if (!ReadNumber(line, &count) || count < -1 || count > kMaxElements) {
    return Fail("an aggregate reply of impossible length");
  }
  const bool is_attribute = marker == '|';
  if (!is_attribute) scalar->attributes = std::move(attributes_);
  if (count == -1) {
    scalar->type = ReplyType::kNil;
    return Step::kScalar;
  }
  scalar->type = AggregateType(marker);
  if (count == 0) return is_attribute ? Step::kOpened : Step::kScalar;
  if (open_.size() == kMaxDepth) return Fail("a reply nested too deeply");
  const size_t elements = static_cast<size_t>(count) * (scalar->type == ReplyType::kMap ? 2 : 1);
  scalar->elements.reserve(std::min<size_t>(elements, 1024));
  open_.push_back({std::move(*scalar), elements, is_attribute});
  return Step::kOpened;
}

bool ReplyParser::TakeLine(std::string_view* line) {
  const size_t end = buffer_.find('\n', std::max(scanned_, position_));
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    if (scanned_ - position_ > kMaxLineBytes) Fail("a line without end");
    return false;
  }
  *line = std::string_view(buffer_).substr(position_, end - position_);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  position_ = end + 1;
  scanned_ = position_;
  return true;
}

ReplyParser::Step ReplyParser::Fail(std::string message) {
  error_ = "Protocol error: the server sent " + std::move(message);
  return Step::kError;
}

// Keeps the consumed part of the buffer from growing, at a cost linear in the bytes fed.
void ReplyParser::Compact() {
  if (position_ == 0 || position_ < buffer_.size() / 2) return;
  buffer_.erase(0, position_);
  scanned_ -= std::min(scanned_, position_);
  position_ = 0;
}

}  // namespace sava::cli
