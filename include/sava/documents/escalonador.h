// Escalonador: the URL scheduler of document S1 (2.1.4, 2.3.1): a queue of hosts in the order in
// which they became known, each with a list of its URLs, ordered by depth, those known first first.
// Its costs are the document's on purpose: finding a host turns the whole queue, an insertion looks
// at every position from the list's beginning again. For a scheduler that does better see the
// server's frontiers.
//
//   sava::documents::Escalonador escalonador;
//   escalonador.setOutput("urls-out.txt");                        // else saida-out.txt
//   escalonador.AddUrl(sava::documents::Url("http://a.com/x"));   // the caller asks isValid()
//   escalonador.EscalonaTudo();
//
// What is scheduled or shown goes to the output file, one URL or host a line; it is made by the
// first line, and complete when the scheduler is destroyed or another output is set. A file that
// cannot be written throws std::runtime_error.
//
// Breadth-first goes on behind the host that was served last, also in the next call, and begins
// with the first host again when no URL is left. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "sava/documents/celula.h"
#include "sava/documents/fila_encadeada.h"
#include "sava/documents/lista_encadeada.h"
#include "sava/documents/url.h"

namespace sava::documents {

// Gives each structure the Rastro that is told of its accesses: the queue's, and the n-th list's,
// from 1.
struct SemRastreador {
  using Rastro = SemRastro;
  Rastro DaFila() const { return {}; }
  Rastro DaLista(std::uint64_t) const { return {}; }
};

template <typename Rastreador = SemRastreador>
class EscalonadorRastreado {
 public:
  using Rastro = typename Rastreador::Rastro;
  using Urls = ListaEncadeada<Url, Rastro>;

  struct Host {
    std::string host;
    Urls* urls = nullptr;
  };

  explicit EscalonadorRastreado(Rastreador rastreador = Rastreador())
      : rastreador_(std::move(rastreador)),
        hosts_(new FilaEncadeada<Host, Rastro>(rastreador_.DaFila())) {}
  ~EscalonadorRastreado() {
    if (!hosts_->empty()) LimpaTudo();
    delete hosts_;
  }
  EscalonadorRastreado(const EscalonadorRastreado&) = delete;
  EscalonadorRastreado& operator=(const EscalonadorRastreado&) = delete;

  void setOutput(const std::string& nome) {
    if (saida_.is_open()) saida_.close();
    output_ = nome;
  }

  // A URL that is pending already is not added again.
  void AddUrl(const Url& url) {
    Urls* urls = PesquisaHost(url.GetHost());
    if (urls == nullptr) {
      urls = new Urls(rastreador_.DaLista(++conhecidos_));
      Adiciona(urls, url);
      hosts_->push_back({url.GetHost(), urls});
      return;
    }
    if (urls->empty()) return Adiciona(urls, url);
    const auto tamanho = static_cast<std::int64_t>(urls->size());
    for (std::int64_t posicao = 1; posicao <= tamanho; ++posicao) {
      const Url& presente = urls->get_item(posicao);
      if (presente == url) return;
      if (presente.GetDepth() > url.GetDepth()) {
        urls->insert_at(posicao, url);
        ++pendentes_;
        return;
      }
    }
    urls->insert_at(tamanho + 1, url);
    ++pendentes_;
  }

  // Depth-first: all of a host, then the next.
  void EscalonaTudo() { Escalona(kTudo); }
  void Escalona(std::uint64_t quantidade) {
    for (std::size_t i = hosts_->size(); i > 0; --i) {
      const Host host = hosts_->pop_front();
      Retira(host.urls, &quantidade);
      hosts_->push_back(host);
    }
    RecomecaSeVazio();
  }

  // Breadth-first: one of each host in turn.
  void EscalonaTudoBreadth() { EscalonaBreadth(kTudo); }
  void EscalonaBreadth(std::uint64_t quantidade) {
    if (pendentes_ == 0) return;
    const std::size_t total = hosts_->size();
    std::size_t indice = proximo_ % total;  // of the host in front
    Gira(indice);
    while (quantidade > 0 && pendentes_ > 0) {
      const Host host = hosts_->pop_front();
      if (!host.urls->empty()) {
        std::uint64_t uma = 1;
        Retira(host.urls, &uma);
        --quantidade;
        proximo_ = indice + 1;
      }
      hosts_->push_back(host);
      indice = (indice + 1) % total;
    }
    Gira(total - indice);
    RecomecaSeVazio();
  }

  // At most so many of one host. A host that is not known has none.
  void EscalonaHost(const std::string& host, std::uint64_t quantidade) {
    Urls* urls = PesquisaHost(host);
    if (urls == nullptr) return;
    Retira(urls, &quantidade);
    RecomecaSeVazio();
  }

  void VerHost(const std::string& host) {
    const Urls* urls = PesquisaHost(host);
    if (urls == nullptr) return;
    const auto tamanho = static_cast<std::int64_t>(urls->size());
    for (std::int64_t posicao = 1; posicao <= tamanho; ++posicao) {
      Saida() << urls->get_item(posicao) << '\n';
    }
  }

  void ListaHosts() {
    std::ostream& saida = Saida();
    for (std::size_t i = hosts_->size(); i > 0; --i) {
      const Host host = hosts_->pop_front();
      saida << host.host << '\n';
      hosts_->push_back(host);
    }
  }

  // The host stays known.
  void LimpaHost(const std::string& host) {
    Urls* urls = PesquisaHost(host);
    if (urls == nullptr || urls->empty()) return;
    pendentes_ -= urls->size();
    urls->clear();
    RecomecaSeVazio();
  }

  void LimpaTudo() {
    while (!hosts_->empty()) delete hosts_->pop_front().urls;
    conhecidos_ = 0;
    pendentes_ = 0;
    proximo_ = 0;
  }

  // The host's list, nullptr when it is not known; good until LimpaTudo. Every host is taken out
  // of the queue and put back.
  Urls* PesquisaHost(const std::string& nome) {
    Urls* urls = nullptr;
    for (std::size_t i = hosts_->size(); i > 0; --i) {
      const Host host = hosts_->pop_front();
      if (host.host == nome) urls = host.urls;
      hosts_->push_back(host);
    }
    return urls;
  }

 private:
  static constexpr std::uint64_t kTudo = std::numeric_limits<std::uint64_t>::max();

  void Adiciona(Urls* urls, const Url& url) {
    urls->push_back(url);
    ++pendentes_;
  }

  void Retira(Urls* urls, std::uint64_t* quantidade) {
    for (; *quantidade > 0 && !urls->empty(); --*quantidade) {
      Saida() << urls->pop_front() << '\n';
      --pendentes_;
    }
  }

  void Gira(std::size_t vezes) {
    for (; vezes > 0; --vezes) hosts_->push_back(hosts_->pop_front());
  }

  void RecomecaSeVazio() {
    if (pendentes_ == 0) proximo_ = 0;
  }

  std::ostream& Saida() {
    if (!saida_.is_open()) {
      saida_.clear();
      saida_.open(output_, std::ios::binary | std::ios::trunc);
    }
    if (!saida_) throw std::runtime_error(output_ + ": nao se pode escrever");
    return saida_;
  }

  Rastreador rastreador_;
  std::string output_ = "saida-out.txt";
  std::ofstream saida_;
  FilaEncadeada<Host, Rastro>* hosts_;
  std::uint64_t conhecidos_ = 0;  // hosts since the last LimpaTudo
  std::uint64_t pendentes_ = 0;   // URLs
  std::size_t proximo_ = 0;       // breadth-first: behind the host that was served last
};

using Escalonador = EscalonadorRastreado<>;

}  // namespace sava::documents
