// HttpResponse: an answer as data, and its bytes. One is kept and cleared for each request, so that
// answering allocates nothing once its texts have grown to their usual size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/out_buffer.h"

namespace sava::protocol {

struct HttpResponse {
  int status = 200;
  std::string_view content_type;  // empty: there is no body
  std::string fields;             // further header fields, each ended by CR LF
  std::string body;

  void Clear();
  void AddField(std::string_view name, std::string_view value);
};

// "Mon, 16 Nov 2026 08:00:00 GMT", made anew once a second.
class HttpDate {
 public:
  std::string_view At(int64_t unix_seconds);

 private:
  int64_t seconds_ = INT64_MIN;
  std::string text_;
};

struct HttpFraming {
  bool head_only = false;   // HEAD: the fields of the answer without its body
  bool close = false;       // the connection ends with this answer
  bool keep_alive = false;  // said aloud, for HTTP/1.0
  std::string_view date;
};

std::string_view StatusText(int status);
void WriteResponse(OutBuffer* out, const HttpResponse& response, const HttpFraming& framing);

}  // namespace sava::protocol
