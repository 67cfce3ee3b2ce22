// A node: fields are read from the mapped file; libprotobuf parses it only if its message is wanted.
#ifndef CHAKRA_ET_FACADE_V3_NODE_H
#define CHAKRA_ET_FACADE_V3_NODE_H

#include <memory>
#include <type_traits>
#include <typeinfo>

#include "et_feeder_node_attr.h"

namespace Chakra {
namespace FeederV3 {

namespace detail {

// The attribute as a T. Whole numbers and bools stand for each other, whole numbers for reals;
// anything else is a bad cast.
template <class T>
T convert(const chakra_et::Attr& attr) {
  if constexpr (std::is_same<T, std::string>::value) {
    if (auto text = attr.as_string()) return std::string(*text);
  } else if constexpr (std::is_same<T, ChakraAttr>::value) {
    ChakraAttr message;
    chakra_et::wire::Span bytes = attr.message();
    if (message.ParseFromArray(bytes.begin, static_cast<int>(bytes.size()))) return message;
  } else if constexpr (std::is_floating_point<T>::value) {
    if (auto number = attr.as_double()) return static_cast<T>(*number);
  } else if constexpr (std::is_same<T, bool>::value) {
    if (auto flag = attr.as_bool()) return *flag;
  } else {
    if (auto number = attr.as_int()) return static_cast<T>(*number);
  }
  throw std::bad_cast();
}

}  // namespace detail

class ETFeederNode {
 public:
  explicit ETFeederNode(const chakra_et::NodeView& view) : view_(view) {}

  uint64_t id() const { return view_.id(); }
  std::string name() const { return std::string(view_.name()); }
  ChakraProtoMsg::NodeType type() const {
    return static_cast<ChakraProtoMsg::NodeType>(view_.type_number());
  }
  uint64_t runtime() const { return view_.duration_micros(); }  // microseconds
  uint64_t start_time_micros() const { return view_.start_micros(); }

  std::string get_inputs_values() const { return std::string(view_.inputs_values()); }
  std::string get_inputs_shapes() const { return std::string(view_.inputs_shapes()); }
  std::string get_inputs_types() const { return std::string(view_.inputs_types()); }
  std::string get_outputs_values() const { return std::string(view_.outputs_values()); }
  std::string get_outputs_shapes() const { return std::string(view_.outputs_shapes()); }
  std::string get_outputs_types() const { return std::string(view_.outputs_types()); }

  bool has_attr(const std::string& name) const { return find(name).message().begin != nullptr; }

  // Throws std::runtime_error when the node lacks the attribute, std::bad_cast for another type.
  template <class T>
  T get_attr(const std::string& name) const {
    chakra_et::Attr attr = find(name);
    if (attr.message().begin == nullptr) {
      throw std::runtime_error("node " + std::to_string(id()) + " has no attribute " + name);
    }
    return detail::convert<T>(attr);
  }
  template <class T>
  T get_attr(const std::string& name, const T& fallback) const {
    chakra_et::Attr attr = find(name);
    return attr.message().begin == nullptr ? fallback : detail::convert<T>(attr);
  }

  const ChakraAttr& get_attr_msg(const std::string& name) const {
    for (const ChakraAttr& attr : getChakraNode()->attr()) {
      if (attr.name() == name) return attr;
    }
    throw std::runtime_error("node " + std::to_string(id()) + " has no attribute " + name);
  }

  std::shared_ptr<ChakraNode> getChakraNode() const {
    if (!message_) {
      auto message = std::make_shared<ChakraNode>();
      chakra_et::wire::Span bytes = view_.message();
      if (!message->ParseFromArray(bytes.begin, static_cast<int>(bytes.size()))) {
        throw std::runtime_error("node " + std::to_string(id()) + " is not a valid message");
      }
      message_ = std::move(message);
    }
    return message_;
  }

  const chakra_et::NodeView& view() const { return view_; }

  bool is_cpu_op() const {
    if (is_cpu_op_ < 0) is_cpu_op_ = view_.is_cpu_op().value_or(false);
    return is_cpu_op_ != 0;
  }
  template <class T>
  T is_cpu_op() const {
    return get_attr<T>("is_cpu_op");
  }
  template <class T>
  T is_cpu_op(const T& fallback) const {
    return get_attr<T>("is_cpu_op", fallback);
  }

// name() and name<T>() throw when the attribute is absent; with an argument they return that.
#define CHAKRA_ET_FACADE_ATTRIBUTE(NAME, TYPE)       \
  TYPE NAME() const { return get_attr<TYPE>(#NAME); } \
  template <class T>                                 \
  T NAME() const {                                   \
    return get_attr<T>(#NAME);                       \
  }                                                  \
  template <class T>                                 \
  T NAME(const T& fallback) const {                  \
    return get_attr<T>(#NAME, fallback);             \
  }

  CHAKRA_ET_FACADE_ATTRIBUTE(num_ops, uint64_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(tensor_size, uint64_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(tensor_loc, uint32_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(comm_type, uint64_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(comm_size, uint64_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(comm_src, uint32_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(comm_dst, uint32_t)
  CHAKRA_ET_FACADE_ATTRIBUTE(comm_tag, uint32_t)
#undef CHAKRA_ET_FACADE_ATTRIBUTE

  uint32_t comm_priority() const { return comm_priority<uint32_t>(); }
  template <class T>
  T comm_priority(const T& fallback = T()) const {  // 0 when absent
    return get_attr<T>("comm_priority", fallback);
  }

  std::string pg_name() const { return get_attr<std::string>("pg_name"); }
  template <class T>
  T pg_name(const T& fallback) const {
    return get_attr<T>("pg_name", fallback);
  }

 private:
  chakra_et::Attr find(const std::string& name) const { return view_.attr(name); }

  chakra_et::NodeView view_;
  mutable std::shared_ptr<ChakraNode> message_;
  mutable int is_cpu_op_ = -1;  // not looked up yet
};

}  // namespace FeederV3
}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_V3_NODE_H
