// Routes: which request goes where. Turns requests into commands and their replies into responses;
// knows no sockets. One per event-loop thread, which it belongs to.
//
//   GET  /                            what may be asked, for people and programs
//   GET  /healthz                     alive
//   POST /associations                AFC.ADD
//   POST /associations:batch          AFC.ADD, many
//   GET, DELETE /associations/{key}   AFC.TOP, AFC.DROP
//   POST, GET /v1/limits/{key}        RL.TAKE, RL.PEEK
#pragma once

#include <memory>

#include "http/associations.h"
#include "http/call.h"
#include "http/limits.h"

namespace sava::http {

class Routes {
 public:
  // Judges a request by its head. False with the answer in *response when it is refused: its body
  // is not wanted.
  static bool Admit(const protocol::HttpRequest& request, const Site& site,
                    protocol::HttpResponse* response);

  // Answers an admitted request. *job holds what a request of several steps has to remember, and is
  // empty at its first.
  Step Handle(Call& call, std::unique_ptr<Job>* job);

 private:
  Associations associations_;
  Limits limits_;
};

}  // namespace sava::http
