// Columns and texts that come from Python, and those that go there.
#ifndef CHAKRA_ET_KERNEL_PYTHON_HPP
#define CHAKRA_ET_KERNEL_PYTHON_HPP

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "grown.hpp"

namespace nb = nanobind;

namespace chakra_et {
namespace kernel {

// Characters are numbers to NumPy.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, char>, uint8_t, T>;

template <class T>
nb::object array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  kept->reserve(1);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  size_t size = kept->size();
  return nb::cast(nb::ndarray<nb::numpy, Element<T>, nb::ndim<1>>(
      reinterpret_cast<Element<T>*>(kept->data()), {size}, owner));
}

template <class T>
nb::object array(Grown<T>&& values) {
  if (values.size() == 0) return array(std::vector<T>());
  size_t size = values.size();
  auto* data = reinterpret_cast<Element<T>*>(values.release());
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, Element<T>, nb::ndim<1>>(data, {size}, owner));
}

inline nb::object bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

inline nb::object str_of(std::string_view text) { return nb::str(text.data(), text.size()); }

template <class Texts, class Make>
nb::list list_of(const Texts& texts, Make&& make) {
  nb::list out;
  for (size_t at = 0; at < texts.size(); ++at) out.append(make(texts[at]));
  return out;
}

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig>;

inline std::string_view utf8(nb::handle text) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

inline std::string_view raw(nb::handle bytes) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

// Texts that stand one behind the other.
inline std::vector<std::string_view> texts_between(const Column<uint8_t>& characters,
                                                   const Column<int64_t>& offsets) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at + 1 < offsets.size(); ++at) {
    int64_t begin = offsets.data()[at], end = offsets.data()[at + 1];
    if (begin < 0 || begin > end || static_cast<uint64_t>(end) > characters.size()) {
      throw nb::index_error();
    }
    out.emplace_back(reinterpret_cast<const char*>(characters.data()) + begin,
                     static_cast<size_t>(end - begin));
  }
  return out;
}

// The text of each code.
inline std::vector<std::string_view> taken(const std::vector<std::string_view>& texts,
                                           const Column<int32_t>& codes) {
  std::vector<std::string_view> out;
  out.reserve(codes.size());
  for (size_t at = 0; at < codes.size(); ++at) {
    auto code = static_cast<size_t>(codes.data()[at]);
    if (code >= texts.size()) throw nb::index_error();
    out.push_back(texts[code]);
  }
  return out;
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PYTHON_HPP
