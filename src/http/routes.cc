#include "http/routes.h"

#include "base/text.h"
#include "http/front_page.h"
#include "http/problem.h"

namespace sava::http {

namespace {

using Method = protocol::HttpMethod;

constexpr std::string_view kTrouble =
    "Writes are refused: the data cannot be written to the disk. The log of the server tells why.";

enum class Place : uint8_t {
  kNowhere,
  kFront,
  kHealth,
  kAssociations,
  kBatch,
  kAssociation,
  kLimit
};

struct Target {
  Place place = Place::kNowhere;
  std::string_view name;  // the path's last segment, as sent
};

Target Find(std::string_view path) {
  constexpr std::string_view kAssociations = "/associations";
  constexpr std::string_view kLimits = "/v1/limits/";
  const auto segment = [](Place place, std::string_view name) {
    const bool one = !name.empty() && name.find('/') == std::string_view::npos;
    return one ? Target{place, name} : Target{};
  };
  if (path.starts_with(kAssociations)) {
    const std::string_view rest = path.substr(kAssociations.size());
    if (rest.empty()) return {Place::kAssociations, {}};
    if (rest == ":batch") return {Place::kBatch, {}};
    return rest.front() == '/' ? segment(Place::kAssociation, rest.substr(1)) : Target{};
  }
  if (path.starts_with(kLimits)) return segment(Place::kLimit, path.substr(kLimits.size()));
  if (path == "/") return {Place::kFront, {}};
  if (path == "/healthz") return {Place::kHealth, {}};
  return {};
}

// The methods of a place, as Allow lists them.
std::string_view Allowed(Place place) {
  switch (place) {
    case Place::kFront:
    case Place::kHealth:
      return "GET, HEAD";
    case Place::kAssociations:
    case Place::kBatch:
      return "POST";
    case Place::kAssociation:
      return "GET, HEAD, DELETE";
    case Place::kLimit:
      return "GET, HEAD, POST";
    case Place::kNowhere:
      break;
  }
  return "";
}

bool Takes(Place place, Method method) {
  switch (method) {
    case Method::kGet:
    case Method::kHead:
      return place == Place::kFront || place == Place::kHealth || place == Place::kAssociation ||
             place == Place::kLimit;
    case Method::kPost:
      return place == Place::kAssociations || place == Place::kBatch || place == Place::kLimit;
    case Method::kDelete:
      return place == Place::kAssociation;
    default:
      return false;
  }
}

bool MayHaveBody(Place place, const protocol::HttpRequest& request,
                 protocol::HttpResponse* response) {
  const bool lines =
      place == Place::kBatch && IsMediaType(request.content_type, "application/x-ndjson");
  if (!lines && !IsMediaType(request.content_type, kJson)) {
    Problem(response, 415, "A body needs Content-Type: application/json.");
    response->AddField("Accept-Post", place == Place::kBatch
                                          ? "application/json, application/x-ndjson"
                                          : "application/json");
    return false;
  }
  if (!request.content_encoding.empty() &&
      !base::EqualsNoCase(request.content_encoding, "identity")) {
    Problem(response, 415, "Compressed bodies are not read here.");
    return false;
  }
  return true;
}

}  // namespace

bool Routes::Admit(const protocol::HttpRequest& request, const Site& site,
                   protocol::HttpResponse* response) {
  const Target target = Find(request.path);
  if (target.place != Place::kHealth && !MayEnter(request, site, response)) return false;
  if (target.place == Place::kNowhere) {
    Problem(response, 404, "There is nothing at this path.");
    return false;
  }
  if (!Takes(target.place, request.method)) {
    Problem(response, 405, "This path does not take that method.");
    response->AddField("Allow", Allowed(target.place));
    return false;
  }
  return !request.has_body || MayHaveBody(target.place, request, response);
}

Step Routes::Handle(Call& call, std::unique_ptr<Job>* job) {
  if (*job != nullptr) return (*job)->Go(call);
  const Target target = Find(call.request.path);
  switch (target.place) {
    case Place::kAssociations:
      return associations_.Record(call);
    case Place::kAssociation:
      return call.request.method == Method::kDelete ? associations_.Forget(call, target.name)
                                                    : associations_.Top(call, target.name);
    case Place::kBatch:
      *job = Associations::StartBatch(call);
      return (*job)->Go(call);
    case Place::kLimit:
      return call.request.method == Method::kPost ? limits_.Take(call, target.name)
                                                  : limits_.Peek(call, target.name);
    case Place::kFront:
      WriteFrontPage(call);
      return Step::kDone;
    case Place::kHealth:
      if (call.site.refuses_writes) {
        Problem(call.response, 503, kTrouble);
        return Step::kDone;
      }
      call.response->content_type = kJson;
      call.response->body = R"({"status":"ok"})";
      return Step::kDone;
    case Place::kNowhere:
      break;
  }
  Problem(call.response, 404, "There is nothing at this path.");
  return Step::kDone;
}

}  // namespace sava::http
