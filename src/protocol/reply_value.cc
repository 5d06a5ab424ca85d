#include "protocol/reply_value.h"

#include <limits>
#include <utility>

#include "base/text.h"

namespace sava::protocol {

namespace {

constexpr std::pair<char, ReplyKind> kContainers[] = {{'*', ReplyKind::kArray},
                                                      {'%', ReplyKind::kMap},
                                                      {'~', ReplyKind::kSet},
                                                      {'>', ReplyKind::kPush},
                                                      {'|', ReplyKind::kMap}};

const ReplyKind* ContainerKind(char kind) {
  for (const auto& [letter, container] : kContainers) {
    if (letter == kind) return &container;
  }
  return nullptr;
}

}  // namespace

double ReplyValue::number() const {
  if (is_int()) return static_cast<double>(integer());
  if (kind() != ReplyKind::kDouble) return 0;
  if (text() == "nan") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  return base::ParseDouble(text(), &value) ? value : 0;
}

bool ParsedReply::Parse(std::string_view bytes) {
  if (ParseAll(bytes)) return true;
  nodes_.assign(1, {});
  return false;
}

bool ParsedReply::ParseAll(std::string_view bytes) {
  nodes_.clear();
  open_.clear();
  do {
    if (!ReadValue(&bytes)) return false;
  } while (!open_.empty() || nodes_.empty());
  return bytes.empty();
}

bool ParsedReply::ReadValue(std::string_view* rest) {
  const size_t end = rest->find("\r\n");
  if (end == std::string_view::npos || end == 0) return false;
  const char kind = rest->front();
  const std::string_view line = rest->substr(1, end - 1);
  rest->remove_prefix(end + 2);
  if (ContainerKind(kind) != nullptr) return OpenContainer(kind, line, rest->size());
  Node node;
  const bool string = kind == '$' || kind == '=' || kind == '!';
  if (!(string ? ReadString(kind, line, rest, &node) : ReadLine(kind, line, &node))) return false;
  nodes_.push_back(node);
  Close();
  return true;
}

bool ParsedReply::ReadLine(char kind, std::string_view line, Node* node) {
  node->text = line;
  switch (kind) {
    case '+':
      node->kind = ReplyKind::kSimple;
      return true;
    case '-':
      node->kind = ReplyKind::kError;
      return true;
    case ':':
      node->kind = ReplyKind::kInt;
      return base::ParseInt(line, &node->integer);
    case ',':
      node->kind = ReplyKind::kDouble;
      return !line.empty();
    case '(':
      node->kind = ReplyKind::kBigNumber;
      return !line.empty();
    case '#':
      node->kind = ReplyKind::kBool;
      node->integer = line == "t" ? 1 : 0;
      return line == "t" || line == "f";
    case '_':
      node->kind = ReplyKind::kNull;
      return line.empty();
    default:
      return false;
  }
}

bool ParsedReply::ReadString(char kind, std::string_view line, std::string_view* rest, Node* node) {
  int64_t length = 0;
  if (!base::ParseInt(line, &length)) return false;
  if (length == -1 && kind == '$') return true;  // RESP2's null
  if (length < 0 || rest->size() < 2 || static_cast<size_t>(length) > rest->size() - 2) {
    return false;
  }
  const auto size = static_cast<size_t>(length);
  if (rest->substr(size, 2) != "\r\n") return false;
  node->text = rest->substr(0, size);
  rest->remove_prefix(size + 2);
  node->kind = kind == '$'   ? ReplyKind::kBulk
               : kind == '=' ? ReplyKind::kVerbatim
                             : ReplyKind::kError;
  if (kind != '=') return true;
  if (size < 4 || node->text[3] != ':') return false;
  node->text.remove_prefix(4);
  return true;
}

bool ParsedReply::OpenContainer(char kind, std::string_view line, size_t left) {
  int64_t count = 0;
  if (!base::ParseInt(line, &count)) return false;
  Node node;
  if (count == -1 && kind == '*') {  // RESP2's null
    nodes_.push_back(node);
    Close();
    return true;
  }
  // Each value takes three bytes or more.
  if (count < 0 || static_cast<size_t>(count) > left / 3 || open_.size() == kMaxDepth) return false;
  node.kind = *ContainerKind(kind);
  node.children = static_cast<size_t>(count) * (node.kind == ReplyKind::kMap ? 2 : 1);
  open_.push_back({nodes_.size(), node.children, kind == '|'});
  nodes_.push_back(node);
  if (node.children > 0) return true;
  const bool attribute = kind == '|';
  open_.pop_back();
  if (attribute) {
    nodes_.pop_back();
  } else {
    Close();
  }
  return true;
}

void ParsedReply::Close() {
  while (!open_.empty() && --open_.back().missing == 0) {
    const Open done = open_.back();
    open_.pop_back();
    if (done.attribute) {  // it belongs to the value that follows and is none itself
      nodes_.resize(done.node);
      return;
    }
    nodes_[done.node].span = nodes_.size() - done.node;
  }
}

}  // namespace sava::protocol
