// A node under the names of mlcommons' feeder: absent attributes read as 0, false or "".
#ifndef CHAKRA_ET_FACADE_NODE_H
#define CHAKRA_ET_FACADE_NODE_H

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chakra_et/feeder.hpp"
#include "et_def.pb.h"

namespace Chakra {

class ETFeederNode {
 public:
  explicit ETFeederNode(const chakra_et::NodeView& view) : view_(view) {}

  uint64_t id() const { return view_.id(); }
  std::string name() const { return std::string(view_.name()); }
  ChakraProtoMsg::NodeType type() const {
    return static_cast<ChakraProtoMsg::NodeType>(view_.type_number());
  }
  uint64_t runtime() const { return view_.duration_micros(); }  // microseconds

  bool is_cpu_op() const { return view_.is_cpu_op().value_or(false); }
  uint64_t num_ops() const { return view_.num_ops().value_or(0); }
  uint64_t tensor_size() const { return view_.tensor_size().value_or(0); }
  uint32_t tensor_loc() const { return static_cast<uint32_t>(number("tensor_loc")); }
  ChakraProtoMsg::CollectiveCommType comm_type() const {
    return static_cast<ChakraProtoMsg::CollectiveCommType>(number("comm_type"));
  }
  uint32_t comm_priority() const { return static_cast<uint32_t>(number("comm_priority")); }
  uint64_t comm_size() const { return view_.comm_size().value_or(0); }
  uint32_t comm_src() const { return static_cast<uint32_t>(number("comm_src")); }
  uint32_t comm_dst() const { return static_cast<uint32_t>(number("comm_dst")); }
  uint32_t comm_tag() const { return static_cast<uint32_t>(number("comm_tag")); }
  std::string pg_name() const { return std::string(view_.pg_name().value_or("")); }

  std::string get_inputs_values() const { return std::string(view_.inputs_values()); }
  std::string get_inputs_shapes() const { return std::string(view_.inputs_shapes()); }
  std::string get_inputs_types() const { return std::string(view_.inputs_types()); }
  std::string get_outputs_values() const { return std::string(view_.outputs_values()); }
  std::string get_outputs_shapes() const { return std::string(view_.outputs_shapes()); }
  std::string get_outputs_types() const { return std::string(view_.outputs_types()); }

  bool has_other_attr(const std::string& name) const {
    return view_.attr(name).message().begin != nullptr;
  }
  const ChakraProtoMsg::AttributeProto& get_other_attr(const std::string& name) const {
    for (const ChakraProtoMsg::AttributeProto& attr : getChakraNode()->attr()) {
      if (attr.name() == name) return attr;
    }
    throw std::runtime_error("node " + std::to_string(id()) + " has no attribute " + name);
  }

  std::shared_ptr<ChakraProtoMsg::Node> getChakraNode() const {
    if (!message_) {
      auto message = std::make_shared<ChakraProtoMsg::Node>();
      chakra_et::wire::Span bytes = view_.message();
      if (!message->ParseFromArray(bytes.begin, static_cast<int>(bytes.size()))) {
        throw std::runtime_error("node " + std::to_string(id()) + " is not a valid message");
      }
      message_ = std::move(message);
    }
    return message_;
  }

  const chakra_et::NodeView& view() const { return view_; }

 private:
  int64_t number(std::string_view name) const { return view_.attr(name).as_int().value_or(0); }

  chakra_et::NodeView view_;
  mutable std::shared_ptr<ChakraProtoMsg::Node> message_;
};

}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_NODE_H
