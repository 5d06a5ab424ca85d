// Url: a URL taken apart, as document S1 has it (2.1.3), by the rules of the assignment behind it:
// scheme and host in lower case; a leading `www.` is dropped where a dot follows behind it, so are
// trailing slashes when there is no query; the fragment is dropped. Depth is the number of slashes
// in the path.
//
//   const sava::documents::Url url("http://www.example.com/a/b.html?x=1");
//   url.GetHost();     // "example.com"
//   url.GetDepth();    // 2
//   url.isValid();     // only http, with a host, without blanks, no .jpg .gif .mp3 .avi .doc .pdf
//
// Not thread-safe while it is assigned to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>

namespace sava::documents {

class Url {
 public:
  Url() = default;

  explicit Url(std::string_view texto) {
    texto = texto.substr(0, texto.find('#'));
    const std::size_t sinal = texto.find("://");
    if (sinal != std::string_view::npos) {
      protocol_ = Minusculas(texto.substr(0, sinal));
      texto.remove_prefix(sinal + 3);
    }
    const std::size_t fim = std::min(texto.find_first_of("/?"), texto.size());
    host_ = SemWww(Minusculas(texto.substr(0, fim)));
    std::string_view resto = texto.substr(fim);
    const std::size_t pergunta = resto.find('?');
    if (pergunta != std::string_view::npos) {
      query_ = resto.substr(pergunta);
      resto = resto.substr(0, pergunta);
    } else {
      while (!resto.empty() && resto.back() == '/') resto.remove_suffix(1);
    }
    path_ = resto;
    depth_ = static_cast<int>(std::count(path_.begin(), path_.end(), '/'));
  }

  void print(std::ostream& saida = std::cout) const { saida << *this; }

  const std::string& GetProtocol() const { return protocol_; }
  const std::string& GetHost() const { return host_; }
  const std::string& GetPath() const { return path_; }
  int GetDepth() const { return depth_; }

  bool isValid() const {
    return protocol_.compare("http") == 0 && !host_.empty() && host_[0] != ':' &&
           host_.find('@') == std::string::npos && !TemBranco(host_) && !TemBranco(path_) &&
           !TemBranco(query_) && !ExtensaoRecusada();
  }

  friend std::ostream& operator<<(std::ostream& saida, const Url& url) {
    if (!url.protocol_.empty()) saida << url.protocol_ << "://";
    saida << url.host_;
    if (!url.path_.empty()) saida << url.path_;
    if (!url.query_.empty()) saida << url.query_;
    return saida;
  }

  friend bool operator==(const Url& a, const Url& b) {
    return a.path_.compare(b.path_) == 0 && a.query_.compare(b.query_) == 0 &&
           a.host_.compare(b.host_) == 0 && a.protocol_.compare(b.protocol_) == 0;
  }
  friend bool operator!=(const Url& a, const Url& b) { return !(a == b); }

 private:
  static std::string Minusculas(std::string_view texto) {
    std::string minusculas(texto);
    for (char& c : minusculas) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return minusculas;
  }

  // `www.` goes only while a dot follows behind it: www.com is a host of its own. Alone it is none.
  static std::string SemWww(std::string host) {
    constexpr std::string_view kWww = "www.";
    while (host.compare(0, kWww.size(), kWww) == 0 &&
           host.find('.', kWww.size()) != std::string::npos) {
      host.erase(0, kWww.size());
    }
    return host == kWww ? std::string() : host;
  }

  static bool TemBranco(const std::string& texto) {
    return std::any_of(texto.begin(), texto.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte <= ' ' || byte == 0x7f;
    });
  }

  bool ExtensaoRecusada() const {
    if (path_.size() < 4) return false;
    const std::string fim = Minusculas(std::string_view(path_).substr(path_.size() - 4));
    for (const char* recusada : {".jpg", ".gif", ".mp3", ".avi", ".doc", ".pdf"}) {
      if (fim.compare(recusada) == 0) return true;
    }
    return false;
  }

  int depth_ = 0;
  std::string protocol_;
  std::string host_;
  std::string path_;
  std::string query_;  // from its question mark on
};

}  // namespace sava::documents
