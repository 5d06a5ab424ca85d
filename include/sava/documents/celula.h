// What queue and list of document S1 are made of (figure 1): cells with a pointer to the item and
// one to the next cell. A Rastro is told of every access to them, for the document's maps of memory
// accesses (chapter 5.2); SemRastro, the default, costs nothing.
#pragma once

#include <memory>
#include <utility>

namespace sava::documents {

template <typename T>
struct Celula {
  T* item = nullptr;
  Celula* next = nullptr;
};

// A cell with a copy of the item.
template <typename T>
Celula<T>* NovaCelula(const T& item, Celula<T>* next) {
  auto copia = std::make_unique<T>(item);
  auto* celula = new Celula<T>{copia.get(), next};
  copia.release();
  return celula;
}

// Takes the item out and frees the cell.
template <typename T>
T LiberaCelula(Celula<T>* celula) {
  const std::unique_ptr<Celula<T>> dona(celula);
  const std::unique_ptr<T> item(celula->item);
  return std::move(*item);
}

struct SemRastro {
  template <typename T>
  void LeCelula(const Celula<T>*) const {}
  template <typename T>
  void EscreveCelula(const Celula<T>*) const {}
  template <typename T>
  void LeItem(const T*) const {}
  template <typename T>
  void EscreveItem(const T*) const {}
};

}  // namespace sava::documents
