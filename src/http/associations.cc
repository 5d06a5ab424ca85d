#include "http/associations.h"

#include "base/text.h"
#include "http/guid.h"
#include "http/problem.h"
#include "http/text.h"

namespace sava::http {

namespace {

using protocol::HttpResponse;

bool ReadKey(JsonReader* reader, const JsonMember& member, std::string* scratch,
             std::string_view* value) {
  if (value->data() != nullptr) return reader->Fail("a property is given twice");
  if (member.kind == JsonKind::kOther) {
    return reader->Fail("a key is neither a string nor a number");
  }
  if (member.value.empty()) return reader->Fail("a key is empty");
  if (!member.in_text) scratch->assign(member.value);
  *value = member.in_text ? member.value : std::string_view(*scratch);
  return true;
}

// With associations-guid-keys a GUID is one key, however it is written.
void Canonicalise(const Site& site, Association* association) {
  if (!site.associations_guid_keys) return;
  if (CanonicalGuid(association->key, &association->key_scratch)) {
    association->key = association->key_scratch;
  }
  if (CanonicalGuid(association->associated, &association->associated_scratch)) {
    association->associated = association->associated_scratch;
  }
}

// *k from the query; false when it is not a number in range.
bool ReadTop(std::string_view query, int64_t* k) {
  QueryReader reader(query);
  std::string_view name;
  std::string_view value;
  QueryReader::Outcome outcome;
  while ((outcome = reader.Next(&name, &value)) == QueryReader::Outcome::kPair) {
    if (name != "k") continue;
    if (!base::ParseInt(value, k) || *k < 1 || *k > kMaxTop) return false;
  }
  return outcome == QueryReader::Outcome::kEnd;
}

// Appends a pair of a member and its count; false when it is none.
bool AppendPair(protocol::ReplyValue pair, std::string* body) {
  if (pair.kind() != protocol::ReplyKind::kArray || pair.size() != 2) return false;
  auto part = pair.begin();
  const protocol::ReplyValue member = *part;
  const protocol::ReplyValue frequency = *++part;
  if (!member.is_text() || !frequency.is_int()) return false;
  char digits[24];
  body->append("{\"associatedKey\":");
  AppendJson(body, member.text());
  body->append(",\"frequency\":").append(digits, base::FormatInt(frequency.integer(), digits));
  body->push_back('}');
  return true;
}

void WriteTop(Call& call) {
  HttpResponse* response = call.response;
  const protocol::ReplyValue reply = call.reply();
  if (reply.is_error()) return ProblemFromError(response, reply.text(), call.executor);
  std::string& body = response->body;
  constexpr size_t kUsualPair = 80;  // a GUID and its frequency
  if (reply.is_container()) body.reserve(reply.size() * kUsualPair);
  bool good = reply.kind() == protocol::ReplyKind::kArray;
  for (const protocol::ReplyValue pair : reply) {
    body.push_back(body.empty() ? '[' : ',');
    good = good && AppendPair(pair, &body);
  }
  if (!good) return Problem(response, 500, "The counter's answer cannot be read.");
  if (body.empty()) body.push_back('[');
  body.push_back(']');
  response->content_type = kJson;
  response->AddField("Cache-Control", "no-store");
}

// The type of a key's value, by TYPE's reply.
enum class Found : uint8_t { kNothing, kCounter, kOther, kError };

// From a reply that is not what was expected.
void RefuseFor(Call& call) {
  const protocol::ReplyValue reply = call.reply();
  ProblemFromError(call.response, reply.is_error() ? reply.text() : "ERR the answer cannot be read",
                   call.executor);
}

Found ReadType(Call& call) {
  const protocol::ReplyValue reply = call.reply();
  if (reply.is_text()) {
    const std::string_view type = reply.text();
    return type == "none" ? Found::kNothing : type == "afc" ? Found::kCounter : Found::kOther;
  }
  RefuseFor(call);
  return Found::kError;
}

constexpr std::string_view kNoCounter = "The key holds a value of another type.";

}  // namespace

bool ReadAssociation(JsonReader* reader, Association* out) {
  out->key = out->associated = {};
  const bool read = reader->Object([&](const JsonMember& member) {
    if (base::EqualsNoCase(member.name, "key")) {
      return ReadKey(reader, member, &out->key_scratch, &out->key);
    }
    if (base::EqualsNoCase(member.name, "associatedKey")) {
      return ReadKey(reader, member, &out->associated_scratch, &out->associated);
    }
    return true;
  });
  if (!read) return false;
  if (out->key.data() == nullptr) return reader->Fail("key is missing");
  if (out->associated.data() == nullptr) return reader->Fail("associatedKey is missing");
  return true;
}

Step Associations::Record(Call& call) {
  JsonReader reader(call.request.body);
  if (!ReadAssociation(&reader, &association_) ||
      (!reader.AtEnd() && !reader.Fail("something follows the object"))) {
    Problem(call.response, 400,
            R"(The body is not {"key": ..., "associatedKey": ...}: )" + reader.error() + ".");
    return Step::kDone;
  }
  Canonicalise(call.site, &association_);
  if (association_.key.size() > call.site.max_key) {
    KeyTooLong(call.response, call.site.max_key);
    return Step::kDone;
  }
  key_.assign(call.site.associations_prefix).append(association_.key);
  const std::string_view words[] = {"AFC.ADD", key_, association_.associated};
  if (!call.Run(words)) return Step::kWait;
  if (call.reply().is_int()) {
    call.response->status = 204;
  } else {
    RefuseFor(call);
  }
  return Step::kDone;
}

bool Associations::KeyOf(Call& call, std::string_view name) {
  std::string_view decoded;
  if (!PercentDecode(name, false, &scratch_, &decoded)) {
    Problem(call.response, 400, "The path is not percent-encoded as it should be.");
    return false;
  }
  if (decoded.size() > call.site.max_key) {
    KeyTooLong(call.response, call.site.max_key);
    return false;
  }
  std::string canonical;
  if (call.site.associations_guid_keys && CanonicalGuid(decoded, &canonical)) decoded = canonical;
  key_.assign(call.site.associations_prefix).append(decoded);
  return true;
}

Step Associations::Top(Call& call, std::string_view name) {
  int64_t k = call.site.associations_top;
  if (!ReadTop(call.request.query, &k)) {
    Problem(call.response, 400, "k is a number from 1 to 10000.");
    return Step::kDone;
  }
  if (!KeyOf(call, name)) return Step::kDone;
  char digits[24];
  const std::string_view words[] = {
      "AFC.TOP", key_, {digits, base::FormatInt(k, digits)}, "WITHCOUNTS"};
  if (!call.Run(words)) return Step::kWait;
  WriteTop(call);
  return Step::kDone;
}

Step Associations::Forget(Call& call, std::string_view name) {
  if (!KeyOf(call, name)) return Step::kDone;
  const std::string_view words[] = {"AFC.DROP", key_};
  if (!call.Run(words)) return Step::kWait;
  if (call.reply().is_error()) RefuseFor(call);
  return Step::kDone;
}

// ---- batches ----

namespace {

// Everything is read and checked before anything is applied. Steps are short: other clients have
// their turn between them.
class BatchJob final : public Job {
 public:
  BatchJob(std::string_view prefix, bool lines) : prefix_(prefix), lines_(lines) {}
  Step Go(Call& call) override;

 private:
  // A piece of the body, or of decoded_ when it had escapes. The body may move between steps.
  struct Text {
    uint32_t offset = 0;
    uint32_t size = 0;
    bool decoded = false;
  };
  struct Element {
    Text key;
    Text associated;
  };
  enum class Phase : uint8_t { kRead, kCheck, kApply };
  static constexpr size_t kStep = 1000;
  static constexpr size_t kMaxWords = 256;

  // Each does a part of its phase; kDone when the answer is there, kMore when it may go on.
  Step Read(Call& call, size_t* budget);
  Step Check(Call& call, size_t* budget);
  Step Apply(Call& call, size_t* budget);
  // False with the answer when the element cannot be used.
  bool ReadElement(Call& call, JsonReader* reader);
  Step Refuse(Call& call, std::string_view why);
  Text Keep(std::string_view value, std::string_view body);
  std::string_view View(const Text& text, std::string_view body) const {
    return (text.decoded ? std::string_view(decoded_) : body).substr(text.offset, text.size);
  }
  void MakeKey(size_t element, std::string_view body) {
    key_.assign(prefix_).append(View(elements_[element].key, body));
  }
  // The first element from `begin` on that has another key.
  size_t EndOfRun(size_t begin, std::string_view body) const;

  const std::string prefix_;
  const bool lines_;
  Phase phase_ = Phase::kRead;
  bool begun_ = false;
  size_t position_ = 0;  // in the body
  size_t next_ = 0;      // element
  int64_t added_ = 0;
  std::vector<Element> elements_;
  std::string decoded_;
  Association association_;
  std::string key_;
  std::vector<std::string_view> words_;
};

Step BatchJob::Refuse(Call& call, std::string_view why) {
  const std::string index = base::IntText(static_cast<int64_t>(elements_.size()));
  Problem(call.response, 400, "Element " + index + ": " + std::string(why) + ".",
          ",\"index\":" + index);
  return Step::kDone;
}

BatchJob::Text BatchJob::Keep(std::string_view value, std::string_view body) {
  const bool inside = value.data() >= body.data() && value.data() < body.data() + body.size();
  const size_t offset = inside ? static_cast<size_t>(value.data() - body.data()) : decoded_.size();
  if (!inside) decoded_.append(value);
  return {static_cast<uint32_t>(offset), static_cast<uint32_t>(value.size()), !inside};
}

bool BatchJob::ReadElement(Call& call, JsonReader* reader) {
  if (!ReadAssociation(reader, &association_)) {
    Refuse(call, reader->error());
    return false;
  }
  Canonicalise(call.site, &association_);
  if (association_.key.size() > call.site.max_key) {
    KeyTooLong(call.response, call.site.max_key,
               ",\"index\":" + base::IntText(static_cast<int64_t>(elements_.size())));
    return false;
  }
  const std::string_view body = call.request.body;
  elements_.push_back({Keep(association_.key, body), Keep(association_.associated, body)});
  return true;
}

Step BatchJob::Read(Call& call, size_t* budget) {
  const std::string_view body = call.request.body;
  while (lines_) {
    while (position_ < body.size() && (body[position_] == '\n' || body[position_] == '\r')) {
      ++position_;
    }
    if (position_ >= body.size()) break;
    if (*budget == 0) return Step::kMore;
    --*budget;
    const size_t end = std::min(body.find('\n', position_), body.size());
    JsonReader reader(body.substr(0, end), position_);
    if (reader.Peek() == '\0') {
      position_ = end;
      continue;
    }
    if (!ReadElement(call, &reader)) return Step::kDone;
    if (!reader.AtEnd()) {
      elements_.pop_back();
      return Refuse(call, "something follows the object on its line");
    }
    position_ = end;
  }
  if (!lines_) {
    JsonReader reader(body, position_);
    if (!begun_ && !reader.Take('[')) {
      Problem(call.response, 400, "The body is not an array.");
      return Step::kDone;
    }
    bool more = begun_ || !reader.Take(']');
    begun_ = true;
    while (more) {
      if (*budget == 0) {
        position_ = reader.position();
        return Step::kMore;
      }
      --*budget;
      if (!ReadElement(call, &reader)) return Step::kDone;
      more = reader.Take(',');
      if (!more && !reader.Take(']')) return Refuse(call, "a comma or ] is expected behind it");
    }
    if (!reader.AtEnd()) {
      Problem(call.response, 400, "Something follows the array.");
      return Step::kDone;
    }
  }
  phase_ = Phase::kCheck;
  return Step::kMore;
}

size_t BatchJob::EndOfRun(size_t begin, std::string_view body) const {
  const std::string_view key = View(elements_[begin].key, body);
  size_t end = begin + 1;
  while (end < elements_.size() && end - begin < kMaxWords &&
         View(elements_[end].key, body) == key) {
    ++end;
  }
  return end;
}

Step BatchJob::Check(Call& call, size_t* budget) {
  const std::string_view body = call.request.body;
  while (next_ < elements_.size()) {
    if (*budget == 0) return Step::kMore;
    --*budget;
    MakeKey(next_, body);
    const std::string_view ask[] = {"TYPE", key_};
    if (!call.Look(ask)) return Step::kWait;
    const Found found = ReadType(call);
    if (found == Found::kError) return Step::kDone;
    if (found == Found::kOther) {
      Problem(call.response, 409, kNoCounter,
              ",\"index\":" + base::IntText(static_cast<int64_t>(next_)));
      return Step::kDone;
    }
    next_ = EndOfRun(next_, body);
  }
  next_ = 0;
  phase_ = Phase::kApply;
  return Step::kMore;
}

Step BatchJob::Apply(Call& call, size_t* budget) {
  const std::string_view body = call.request.body;
  while (next_ < elements_.size()) {
    if (*budget == 0) return Step::kMore;
    const size_t end = EndOfRun(next_, body);
    MakeKey(next_, body);
    words_.assign({"AFC.ADD", key_});
    for (size_t i = next_; i < end; ++i) words_.push_back(View(elements_[i].associated, body));
    if (!call.Run(words_)) return Step::kWait;
    *budget -= std::min(*budget, 1 + (end - next_) / 4);
    const protocol::ReplyValue reply = call.reply();
    if (!reply.is_int()) {
      // Another client has put another value there meanwhile, or the server stopped taking writes.
      RefuseFor(call);
      call.response->body.pop_back();
      call.response->body += ",\"accepted\":" + base::IntText(static_cast<int64_t>(next_)) + "}";
      return Step::kDone;
    }
    added_ += reply.integer();
    next_ = end;
  }
  call.response->content_type = kJson;
  call.response->body = "{\"accepted\":" + base::IntText(static_cast<int64_t>(elements_.size())) +
                        ",\"new\":" + base::IntText(added_) + "}";
  return Step::kDone;
}

Step BatchJob::Go(Call& call) {
  size_t budget = kStep;
  while (true) {
    const Phase before = phase_;
    const Step step = phase_ == Phase::kRead    ? Read(call, &budget)
                      : phase_ == Phase::kCheck ? Check(call, &budget)
                                                : Apply(call, &budget);
    if (step != Step::kMore || phase_ == before) return step;
  }
}

}  // namespace

std::unique_ptr<Job> Associations::StartBatch(const Call& call) {
  return std::make_unique<BatchJob>(call.site.associations_prefix,
                                    IsMediaType(call.request.content_type, kJsonLines));
}

}  // namespace sava::http
