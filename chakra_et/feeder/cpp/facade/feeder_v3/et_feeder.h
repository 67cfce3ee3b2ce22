// The feeder under the names that ASTRA-sim compiles against. Replaces the folder src/feeder_v3 of
// its chakra submodule.
//
//   CHAKRA_ET_FACADE_SKIP_METADATA  define to have metadata nodes finish by themselves
#ifndef CHAKRA_ET_FACADE_V3_FEEDER_H
#define CHAKRA_ET_FACADE_V3_FEEDER_H

#include <array>
#include <memory>
#include <string>

#include "dependancy_solver.h"
#include "et_feeder_node.h"

namespace Chakra {
namespace FeederV3 {

class ETFeeder {
 public:
  // Throws std::runtime_error when the file is no trace, or when its nodes can never run.
  explicit ETFeeder(const std::string& path) : feeder_(open(path)), resolver_(feeder_) {
    resolver_.refuse_stuck();
  }
  ETFeeder(const ETFeeder&) = delete;
  ETFeeder& operator=(const ETFeeder&) = delete;

  DependancyResolver& getDependancyResolver() { return resolver_; }
  const DependancyResolver& getDependancyResolver() const { return resolver_; }

  // Throws std::runtime_error when there is no such node.
  std::shared_ptr<ETFeederNode> lookupNode(NodeId id) {
    std::shared_ptr<ETFeederNode>& recent = recent_[id % recent_.size()];
    if (!recent || recent->id() != id) {
      chakra_et::NodeView view = feeder_.node(id);
      if (!view.valid()) check(chakra_et::make_error(chakra_et::Code::unknown_node, id));
      recent = std::make_shared<ETFeederNode>(view);
    }
    return recent;
  }

  ChakraGlobalMetadata global_metadata() const {
    ChakraGlobalMetadata message;
    chakra_et::wire::Span bytes = feeder_.metadata().message();
    message.ParseFromArray(bytes.begin, static_cast<int>(bytes.size()));
    return message;
  }

  // The calls of older feeders.
  bool hasNodesToIssue() const { return !feeder_.is_finished(); }
  std::shared_ptr<ETFeederNode> getNextIssuableNode() {
    chakra_et::NodeView view;
    if (feeder_.next(view) != chakra_et::Next::node) return nullptr;
    return lookupNode(view.id());
  }
  void pushBackIssuableNode(NodeId id) { resolver_.push_back_node(id); }
  void freeChildrenNodes(NodeId id) { resolver_.finish_node(id); }
  void removeNode(NodeId id) {
    std::shared_ptr<ETFeederNode>& recent = recent_[id % recent_.size()];
    if (recent && recent->id() == id) recent.reset();
  }

 private:
  static chakra_et::Feeder open(const std::string& path) {
    chakra_et::Options options;
#ifdef CHAKRA_ET_FACADE_SKIP_METADATA
    options.skip_metadata = true;
#endif
    chakra_et::Result<chakra_et::Feeder> opened = chakra_et::Feeder::open(path, options);
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(opened.value());
  }

  chakra_et::Feeder feeder_;
  DependancyResolver resolver_;
  std::array<std::shared_ptr<ETFeederNode>, 1024> recent_;
};

}  // namespace FeederV3

using ETFeeder = FeederV3::ETFeeder;
using ETFeederNode = FeederV3::ETFeederNode;

}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_V3_FEEDER_H
