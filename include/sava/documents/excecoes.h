// The two exceptions of document S1's abstract types (chapter 4): an operation that an empty
// structure cannot do, and a position that does not exist.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace sava::documents {

struct ExcecaoEmpty : std::logic_error {
  // `operacao` is the operation's name: "pop_front".
  explicit ExcecaoEmpty(const std::string& operacao)
      : std::logic_error(operacao + ": estrutura vazia") {}
};

struct ExcecaoInvalidPosition : std::logic_error {
  ExcecaoInvalidPosition(const std::string& operacao, std::int64_t passada, std::int64_t de,
                         std::int64_t ate)
      : std::logic_error(operacao + ": posicao invalida " + std::to_string(passada) +
                         ", validas de " + std::to_string(de) + " a " + std::to_string(ate)),
        posicao(passada),
        primeira(de),
        ultima(ate) {}

  std::int64_t posicao;   // the one that was passed
  std::int64_t primeira;  // the first valid one
  std::int64_t ultima;    // the last valid one
};

}  // namespace sava::documents
