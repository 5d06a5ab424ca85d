// HttpParser: finds HTTP/1.1 and 1.0 requests in the bytes a client has sent, in place.
//
// Strict where leniency lets two readers of one stream disagree about where a request ends: lines
// end with CRLF, a length given again is the same, and never beside a transfer coding, and a name
// touches its colon. The body's chunks are joined where they lie, so the body is one view. Nothing
// is allocated and every length is checked before anything is waited for.
//
// A partial request is remembered as offsets from its first byte: the caller may move the bytes
// between calls as long as it keeps them from that byte on. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sava::protocol {

struct HttpLimits {
  size_t max_head = 16 << 10;  // request line and header fields
  uint64_t max_body = 16 << 20;
};

enum class HttpMethod : uint8_t { kGet, kHead, kPost, kPut, kDelete, kPatch, kOptions, kTrace };
std::string_view MethodName(HttpMethod method);

// Views point into the caller's bytes. Fields that were not sent are empty.
struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  bool http10 = false;
  bool keep_alive = true;
  bool has_body = false;          // a body was announced that is not empty, or may not be
  bool expects_continue = false;  // waits for 100 Continue before it sends the body
  std::string_view path;          // as sent, percent-encoded; begins with '/', or is "*"
  std::string_view query;         // as sent, without the '?'
  std::string_view host;          // with the port, if any
  std::string_view content_type;
  std::string_view content_encoding;
  std::string_view authorization;
  std::string_view origin;
  std::string_view accept;      // the first such field
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view body;        // complete only after kRequest
};

class HttpParser {
 public:
  enum class Outcome {
    kRequest,  // request() is complete, consumed() bytes long
    kMore,     // not enough bytes yet; head_complete() tells how far it is
    kError,    // status() and detail() say why; the rest of the bytes cannot be read
  };

  // Looks for one request at the start of the bytes. Called again after kRequest without Reset, it
  // gives the same request, with views into the bytes given now.
  // After kMore the last dropped() bytes are no longer part of them: chunk headers were taken out.
  Outcome Next(char* bytes, size_t size, const HttpLimits& limits);
  // Forgets the request: the next call looks at the byte behind it.
  void Reset();

  // The line and the header fields have been read: request() is complete but for its body.
  bool head_complete() const { return stage_ >= Stage::kBody; }
  // Nothing of a request has been read.
  bool idle() const { return stage_ == Stage::kLine; }
  const HttpRequest& request() const { return request_; }
  size_t consumed() const { return position_; }
  size_t dropped() const { return dropped_; }
  // How many more bytes the body needs at least (0 when unknown): for sizing reads.
  uint64_t missing() const { return missing_; }

  int status() const { return status_; }
  std::string_view detail() const { return detail_; }

 private:
  enum class Stage : uint8_t {
    kLine,
    kFields,
    kBody,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailers,
    kDone,
  };
  enum class Line : uint8_t { kFound, kPartial, kBad };
  enum Part : uint8_t {
    kPath,
    kQuery,
    kHost,
    kContentType,
    kContentEncoding,
    kAuthorization,
    kOrigin,
    kFetchSite,
    kAccept,
    kParts,
  };
  struct Span {
    uint32_t offset = 0;
    uint32_t size = 0;
  };

  Outcome ReadHead(const char* bytes, size_t size, const HttpLimits& limits);
  Line NextLine(const char* bytes, size_t size, size_t limit, int status, std::string_view* line);
  bool ReadRequestLine(const char* bytes, std::string_view line);
  bool ReadTarget(const char* bytes, std::string_view target);
  bool ReadField(const char* bytes, std::string_view line);
  bool ReadKnownField(const char* bytes, std::string_view name, std::string_view value);
  bool SetOnce(Part part, const char* bytes, std::string_view value);
  bool ReadLength(std::string_view value);
  void ReadConnection(std::string_view value);
  bool EndHead(const HttpLimits& limits);
  Outcome ReadBody(char* bytes, size_t size);
  Outcome ReadChunks(char* bytes, size_t size, const HttpLimits& limits);
  bool ReadChunkSize(std::string_view line, const HttpLimits& limits);
  Outcome MoreChunks(char* bytes, size_t size);
  void PointInto(const char* bytes);
  bool Fail(int status, std::string_view detail);

  Stage stage_ = Stage::kLine;
  uint16_t seen_ = 0;  // bits by Part
  bool chunked_ = false;
  bool has_length_ = false;
  bool close_ = false;
  bool keep_alive_ = false;
  bool blank_line_ = false;
  bool absolute_ = false;  // the target named the host
  uint16_t fields_ = 0;
  int16_t status_ = 0;
  size_t position_ = 0;  // read so far
  size_t body_at_ = 0;
  size_t body_size_ = 0;  // of it, read so far when chunked
  uint64_t length_ = 0;   // Content-Length, or what is left of a chunk
  size_t trailers_ = 0;   // bytes of them
  size_t dropped_ = 0;
  uint64_t missing_ = 0;
  std::array<Span, kParts> parts_;
  std::string_view detail_;
  HttpRequest request_;
};

}  // namespace sava::protocol
