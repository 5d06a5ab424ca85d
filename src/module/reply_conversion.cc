#include "module/reply_conversion.h"

#include <cstdlib>
#include <string>

#include "base/text.h"

namespace sava::module {

namespace {

class Converter {
 public:
  Converter(host::Ctx* ctx, std::string_view bytes) : ctx_(ctx), rest_(bytes) {}

  void Run() {
    while (!rest_.empty()) One();
  }

 private:
  std::string_view Line() {
    const size_t end = rest_.find("\r\n");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(line.size() + 2);
    return line;
  }
  std::string_view Bytes(int64_t size) {
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(bytes.size() + 2);
    return bytes;
  }

  void One() {
    const char kind = rest_.front();
    rest_.remove_prefix(1);
    const std::string_view line = Line();
    switch (kind) {
      case '+':
        host::ReplyWithSimpleString(ctx_, std::string(line).c_str());
        return;
      case '-':
        host::ReplyWithError(ctx_, std::string(line).c_str());
        return;
      case ',':
        host::ReplyWithDouble(ctx_, strtod(std::string(line).c_str(), nullptr));
        return;
      case '#':
        host::ReplyWithBool(ctx_, line == "t" ? 1 : 0);
        return;
      case '(':
        host::ReplyWithBigNumber(ctx_, line.data(), line.size());
        return;
      case '_':
        host::ReplyWithNull(ctx_);
        return;
      default:
        Counted(kind, line);
    }
  }

  void Counted(char kind, std::string_view line) {
    int64_t number = 0;
    static_cast<void>(base::ParseInt(line, &number));
    switch (kind) {
      case ':':
        host::ReplyWithLongLong(ctx_, number);
        return;
      case '$':
        if (number < 0) {
          host::ReplyWithNull(ctx_);
        } else {
          const std::string_view bytes = Bytes(number);
          host::ReplyWithStringBuffer(ctx_, bytes.data(), bytes.size());
        }
        return;
      case '=': {
        const std::string_view bytes = Bytes(number);  // "txt:" and the text
        const std::string type(bytes.substr(0, 3));
        host::ReplyWithVerbatimStringType(ctx_, bytes.data() + 4, bytes.size() - 4, type.c_str());
        return;
      }
      case '*':
        number < 0 ? host::ReplyWithNullArray(ctx_) : host::ReplyWithArray(ctx_, number);
        return;
      case '%':
        host::ReplyWithMap(ctx_, number);
        return;
      case '~':
        host::ReplyWithSet(ctx_, number);
        return;
      default:
        __builtin_unreachable();
    }
  }

  host::Ctx* ctx_;
  std::string_view rest_;
};

}  // namespace

void ReplyWith(host::Ctx* ctx, std::string_view bytes) { Converter(ctx, bytes).Run(); }

}  // namespace sava::module
