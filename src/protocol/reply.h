// Reply: writes RESP2 or RESP3 into a connection's output. Handlers call it directly: no virtual
// call per element. Where the two protocols differ, one call writes the right form.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/blob.h"
#include "base/text.h"
#include "protocol/out_buffer.h"

namespace sava::protocol {

class Reply {
 public:
  Reply(OutBuffer* out, int resp) : out_(out), resp_(resp) {}

  int resp() const { return resp_; }
  void set_resp(int resp) { resp_ = resp; }
  OutBuffer& out() { return *out_; }
  void set_out(OutBuffer* out) { out_ = out; }

  void Ok() { out_->Append("+OK\r\n"); }
  void Simple(std::string_view text) { Line('+', text); }
  // "ERR text" or another code word first, without the leading '-'. Line ends become spaces.
  void Error(std::string_view text);
  void Int(int64_t value) {
    if (value >= 0 && value < 10) {
      char* p = out_->Reserve(4);
      if (p == nullptr) [[unlikely]]
        return;
      p[0] = ':';
      p[1] = static_cast<char>('0' + value);
      p[2] = '\r';
      p[3] = '\n';
      out_->Advance(4);
    } else {
      Number(':', value);
    }
  }
  void Bulk(std::string_view bytes);
  void BulkInt(int64_t value);
  // By reference when large. The blob keeps its bytes until they are sent.
  void BulkBlob(base::Blob* blob);
  // A double as RESP3 double, or as a bulk string in RESP2.
  void Double(double value);
  // RESP3 boolean; integer 1 or 0 in RESP2.
  void Bool(bool value);
  // RESP3 verbatim text ("txt", "mkd"); bulk string in RESP2.
  void Verbatim(std::string_view format, std::string_view text);
  void BigNumber(std::string_view digits);
  void Null() { out_->Append(resp_ == 3 ? "_\r\n" : "$-1\r\n"); }
  void NullArray() { out_->Append(resp_ == 3 ? "_\r\n" : "*-1\r\n"); }

  void Array(int64_t count) { Number('*', count); }
  // An array of integers, written in one go.
  void Ints(std::initializer_list<int64_t> values);
  // count pairs follow; a flat array in RESP2.
  void Map(int64_t count) { resp_ == 3 ? Number('%', count) : Number('*', count * 2); }
  void Set(int64_t count) { Number(resp_ == 3 ? '~' : '*', count); }
  // Out-of-band data; an array in RESP2.
  void Push(int64_t count) { Number(resp_ == 3 ? '>' : '*', count); }
  void Attribute(int64_t pairs) { Number('|', pairs); }

  // For counts known late: `auto mark = r.Mark(); … elements …; r.ArrayAt(mark, n);`
  size_t Mark() const { return out_->Mark(); }
  void ArrayAt(size_t mark, int64_t count) { HeaderAt(mark, '*', count); }
  void MapAt(size_t mark, int64_t count) {
    resp_ == 3 ? HeaderAt(mark, '%', count) : HeaderAt(mark, '*', count * 2);
  }
  void SetAt(size_t mark, int64_t count) { HeaderAt(mark, resp_ == 3 ? '~' : '*', count); }

  // Bytes that are RESP already.
  void Raw(std::string_view bytes) { out_->Append(bytes); }

  // The output is over its limit: whatever is added is dropped, so long replies may stop.
  bool over() const { return out_->over(); }
  // Whether an error was written since ClearError, and its first word.
  bool had_error() const { return had_error_; }
  const std::string& error_code() const { return error_code_; }
  void ClearError() { had_error_ = false; }

 private:
  void Line(char kind, std::string_view text);
  void Number(char kind, int64_t value);
  void HeaderAt(size_t mark, char kind, int64_t count);

  OutBuffer* out_;
  int resp_;
  bool had_error_ = false;
  std::string error_code_;
};

}  // namespace sava::protocol
