// ParsedReply: a whole RESP2 or RESP3 reply as values, for callers inside the server that read what
// a command answered.
//
// Values are kept in one array in the order of the bytes, a container before what it holds, and
// point into those bytes: a reply is parsed in one pass, with one allocation at most for a scalar.
// Attributes are checked and left out. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sava::protocol {

enum class ReplyKind : uint8_t {
  kNull,
  kBool,
  kInt,
  kDouble,
  kBigNumber,
  kSimple,
  kBulk,
  kVerbatim,
  kError,
  kArray,
  kSet,
  kMap,
  kPush,
};

class ParsedReply;

// One value of a ParsedReply; valid until that parses again or ends, and as long as the bytes.
class ReplyValue {
 public:
  class Iterator;

  ReplyKind kind() const { return node_->kind; }
  bool is_null() const { return kind() == ReplyKind::kNull; }
  bool is_int() const { return kind() == ReplyKind::kInt; }
  bool is_error() const { return kind() == ReplyKind::kError; }
  // Simple, bulk and verbatim strings.
  bool is_text() const { return kind() >= ReplyKind::kSimple && kind() <= ReplyKind::kVerbatim; }
  bool is_container() const { return kind() >= ReplyKind::kArray; }

  // Of a kInt; 0 or 1 of a kBool; 0 of others.
  int64_t integer() const { return node_->integer; }
  // Of a kDouble or kInt; 0 of others.
  double number() const;
  // The bytes of a string; of an error with its code word ("WRONGTYPE Operation against …"); the
  // digits of a number as they were written. A verbatim string is without its format.
  std::string_view text() const { return node_->text; }

  // What a container holds: a map's keys and values in turn, so twice its pairs.
  size_t size() const { return node_->children; }
  Iterator begin() const;
  Iterator end() const;

 private:
  friend class ParsedReply;
  struct Node {
    ReplyKind kind = ReplyKind::kNull;
    size_t children = 0;
    size_t span = 1;  // nodes from here to the next value: itself and all it holds
    int64_t integer = 0;
    std::string_view text;
  };
  explicit ReplyValue(const Node* node) : node_(node) {}

  const Node* node_;
};

class ReplyValue::Iterator {
 public:
  ReplyValue operator*() const { return ReplyValue(node_); }
  Iterator& operator++() {
    node_ += node_->span;
    return *this;
  }
  bool operator==(const Iterator&) const = default;

 private:
  friend class ReplyValue;
  explicit Iterator(const Node* node) : node_(node) {}

  const Node* node_;
};

inline ReplyValue::Iterator ReplyValue::begin() const { return Iterator(node_ + 1); }
inline ReplyValue::Iterator ReplyValue::end() const { return Iterator(node_ + node_->span); }

class ParsedReply {
 public:
  static constexpr size_t kMaxDepth = 128;

  ParsedReply() : nodes_(1) {}

  // False when the bytes are not exactly one reply; the root is null then.
  bool Parse(std::string_view bytes);
  ReplyValue root() const { return ReplyValue(nodes_.data()); }

 private:
  using Node = ReplyValue::Node;
  struct Open {
    size_t node;
    size_t missing;  // values that still belong to it
    bool attribute;
  };

  bool ParseAll(std::string_view bytes);
  bool ReadValue(std::string_view* rest);
  bool ReadLine(char kind, std::string_view line, Node* node);
  bool ReadString(char kind, std::string_view line, std::string_view* rest, Node* node);
  bool OpenContainer(char kind, std::string_view line, size_t left);
  // After a value is complete: ends the containers that are full by it.
  void Close();

  std::vector<Node> nodes_;
  std::vector<Open> open_;
};

}  // namespace sava::protocol
