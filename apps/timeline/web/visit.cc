#include "web/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "services/password.h"
#include "web/json.h"

namespace timeline {
namespace {

constexpr const char* kSessionCookie = "session";
constexpr const char* kVisitorCookie = "visitor";

std::optional<std::int64_t> NumberOf(const std::string& text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string CookieText(const char* name, const std::string& value, std::int64_t seconds) {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}", name, value, seconds);
}

// What every change and page checks first; true when the action may run.
bool MayEnter(Visit& visit, Access access) {
  if (access == Access::kAnybody) return true;
  if (!visit.session()) {
    visit.Refuse(401, "Please sign in.");
    return false;
  }
  if (access == Access::kAdministrator) {
    auto user = visit.application().users.Find(visit.user());
    if (!user || !user->administrator) {
      visit.Refuse(403, "This page is for administrators.");
      return false;
    }
  }
  return true;
}

}  // namespace

Visit::Visit(Application* application, const httplib::Request& request, httplib::Response* response)
    : application_(application),
      request_(request),
      response_(response),
      now_(application->now()),
      json_(request.get_header_value("Accept").find("application/json") != std::string::npos) {
  cookie_ = CookieOf(kSessionCookie);
  if (!cookie_.empty()) session_ = application_->users.FindSession(cookie_, now_);
  if (!session_) {
    cookie_ = CookieOf(kVisitorCookie);
    if (cookie_.size() != 64) {
      cookie_ = RandomToken();
      response_->headers.emplace("Set-Cookie", CookieText(kVisitorCookie, cookie_, 86400));
    }
  }
}

std::string Visit::CookieOf(const std::string& name) const {
  auto text = request_.get_header_value("Cookie");
  std::size_t at = 0;
  while (at < text.size()) {
    auto end = std::min(text.find(';', at), text.size());
    auto part = text.substr(at, end - at);
    part.erase(0, part.find_first_not_of(' '));
    if (part.size() > name.size() && part.compare(0, name.size(), name) == 0 &&
        part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
    at = end + 1;
  }
  return "";
}

std::string Visit::Field(const std::string& name) const {
  if (request_.has_file(name)) return request_.get_file_value(name).content;
  return request_.get_param_value(name);
}

std::optional<std::int64_t> Visit::NumberField(const std::string& name) const {
  return NumberOf(Field(name));
}

std::int64_t Visit::PageNumber() const {
  return std::clamp<std::int64_t>(NumberField("page").value_or(0), 0, 1000000000);
}

std::optional<Id> Visit::PathId(std::size_t group) const {
  auto id = NumberOf(request_.matches[group].str());
  return id && *id > 0 ? id : std::nullopt;
}

bool Visit::form_token_fits() const {
  auto token = request_.get_header_value("X-CSRF-Token");
  return application_->users.IsFormToken(cookie_, token.empty() ? Field("csrf") : token);
}

PageFrame Visit::Frame(const std::string& title) const {
  PageFrame frame;
  frame.title = title;
  frame.user = user();
  frame.administrator = session_ && session_->administrator;
  frame.form_token = application_->users.FormToken(cookie_);
  return frame;
}

void Visit::Send(int status, const std::string& body, const char* type) {
  response_->status = status;
  response_->set_header("Cache-Control", "no-store");
  response_->set_header("X-Content-Type-Options", "nosniff");
  response_->set_header(
      "Content-Security-Policy",
      "default-src 'self'; img-src 'self' http: https: data:; form-action 'self'; "
      "frame-ancestors 'none'; base-uri 'none'");
  response_->set_content(body, type);
}

void Visit::Answer(int status, const PageFrame& frame, const std::string& content,
                   const std::string& json) {
  if (json_) {
    Send(status, json, "application/json");
  } else {
    Send(status, WholePage(frame, content), "text/html; charset=utf-8");
  }
}

void Visit::Done(const std::string& location, const std::string& json) {
  if (json_) {
    Send(200, json, "application/json");
    return;
  }
  response_->status = 303;
  response_->set_header("Location", location);
}

void Visit::Refuse(int status, const std::string& message) {
  auto frame = Frame("Sava timeline");
  frame.message = message;
  Answer(status, frame, "<p><a href=\"/\">Back to the start</a></p>",
         JsonObject().Text("error", message).Text("csrf", frame.form_token).str());
}

void Visit::SetSession(const std::string& token) {
  response_->headers.emplace("Set-Cookie",
                             CookieText(kSessionCookie, token, UserService::kSessionSeconds));
}

void Visit::ClearSession() {
  response_->headers.emplace("Set-Cookie", CookieText(kSessionCookie, "", 0));
}

void OnGet(httplib::Server* server, Application* application, const std::string& pattern,
           Access access, Action action) {
  server->Get(pattern, [application, access, action = std::move(action)](
                           const httplib::Request& request, httplib::Response& response) {
    Visit visit(application, request, &response);
    if (MayEnter(visit, access)) action(visit);
  });
}

void OnPost(httplib::Server* server, Application* application, const std::string& pattern,
            Access access, Action action) {
  server->Post(pattern, [application, access, action = std::move(action)](
                            const httplib::Request& request, httplib::Response& response) {
    Visit visit(application, request, &response);
    if (!MayEnter(visit, access)) return;
    if (!visit.form_token_fits()) {
      visit.Refuse(403, "This form is not valid any more. Please load the page again.");
      return;
    }
    action(visit);
  });
}

int StatusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return 200;
    case Outcome::kInvalid:
      return 400;
    case Outcome::kForbidden:
      return 403;
    case Outcome::kMissing:
      return 404;
    case Outcome::kFailed:
      break;
  }
  return 503;
}

}  // namespace timeline
