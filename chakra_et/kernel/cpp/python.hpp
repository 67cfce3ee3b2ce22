// Columns and texts that come from Python, and those that go there.
#ifndef CHAKRA_ET_KERNEL_PYTHON_HPP
#define CHAKRA_ET_KERNEL_PYTHON_HPP

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string_view>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace chakra_et {
namespace kernel {

template <class T>
nb::object array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  kept->reserve(1);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  size_t size = kept->size();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {size}, owner));
}

inline nb::object bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

inline nb::object str_of(std::string_view text) { return nb::str(text.data(), text.size()); }

template <class Texts, class Make>
nb::list list_of(const Texts& texts, Make&& make) {
  nb::list out;
  for (const auto& text : texts) out.append(make(text));
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

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PYTHON_HPP
