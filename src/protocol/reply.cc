#include "protocol/reply.h"

#include <cmath>

namespace sava::protocol {

namespace {

// Below this a copy is cheaper than another vector in the write call.
constexpr size_t kByReference = 16 * 1024;

size_t Header(char* p, char kind, int64_t value) {
  p[0] = kind;
  size_t n = 1 + base::FormatInt(value, p + 1);
  p[n++] = '\r';
  p[n++] = '\n';
  return n;
}

}  // namespace

void Reply::Number(char kind, int64_t value) {
  char* const p = out_->Reserve(24);
  if (p == nullptr) return;
  out_->Advance(Header(p, kind, value));
}

void Reply::HeaderAt(size_t mark, char kind, int64_t count) {
  char header[24];
  out_->InsertAt(mark, {header, Header(header, kind, count)});
}

void Reply::Line(char kind, std::string_view text) {
  char* p = out_->Reserve(text.size() + 3);
  if (p == nullptr) return;
  p[0] = kind;
  memcpy(p + 1, text.data(), text.size());
  p[text.size() + 1] = '\r';
  p[text.size() + 2] = '\n';
  out_->Advance(text.size() + 3);
}

void Reply::Error(std::string_view text) {
  had_error_ = true;
  error_code_.assign(text.substr(0, text.find(' ')));
  while (text.ends_with('\r') || text.ends_with('\n')) text.remove_suffix(1);
  // In the output, so that an error needs no memory besides.
  char* const line = out_->Reserve(text.size() + 3);
  if (line == nullptr) return;
  line[0] = '-';
  for (size_t i = 0; i < text.size(); ++i) {
    line[i + 1] = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
  }
  memcpy(line + 1 + text.size(), "\r\n", 2);
  out_->Advance(text.size() + 3);
}

void Reply::Ints(std::initializer_list<int64_t> values) {
  char* const begin = out_->Reserve((values.size() + 1) * 24);
  if (begin == nullptr) return;
  char* p = begin + Header(begin, '*', static_cast<int64_t>(values.size()));
  for (const int64_t value : values) p += Header(p, ':', value);
  out_->Advance(static_cast<size_t>(p - begin));
}

void Reply::Bulk(std::string_view bytes) {
  char* p = out_->Reserve(bytes.size() + 26);
  if (p == nullptr) return;
  size_t n = Header(p, '$', static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) memcpy(p + n, bytes.data(), bytes.size());
  n += bytes.size();
  p[n++] = '\r';
  p[n++] = '\n';
  out_->Advance(n);
}

void Reply::BulkInt(int64_t value) {
  char text[24];
  Bulk({text, base::FormatInt(value, text)});
}

void Reply::BulkBlob(base::Blob* blob) {
  if (blob->size() < kByReference) {
    Bulk(blob->view());
    return;
  }
  Number('$', static_cast<int64_t>(blob->size()));
  out_->AppendBlob(blob);
  out_->Append("\r\n");
}

void Reply::Double(double value) {
  const std::string text = base::DoubleText(value);
  resp_ == 3 ? Line(',', text) : Bulk(text);
}

void Reply::Bool(bool value) {
  if (resp_ == 3) {
    out_->Append(value ? "#t\r\n" : "#f\r\n");
  } else {
    Int(value ? 1 : 0);
  }
}

void Reply::Verbatim(std::string_view format, std::string_view text) {
  if (resp_ != 3) {
    Bulk(text);
    return;
  }
  Number('=', static_cast<int64_t>(text.size() + 4));
  out_->Append(format);
  out_->Append(":");
  out_->Append(text);
  out_->Append("\r\n");
}

void Reply::BigNumber(std::string_view digits) { resp_ == 3 ? Line('(', digits) : Bulk(digits); }

}  // namespace sava::protocol
