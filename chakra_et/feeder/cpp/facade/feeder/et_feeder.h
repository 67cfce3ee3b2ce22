// The feeder under the names of mlcommons' feeder. Replaces its folder src/feeder.
//
// As there, control dependencies do not gate: define CHAKRA_ET_FACADE_GATE_CONTROL to have them do.
// Some of the standard headers are here only because simulators count on them.
#ifndef CHAKRA_ET_FACADE_FEEDER_H
#define CHAKRA_ET_FACADE_FEEDER_H

#include <fstream>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "et_feeder_node.h"

namespace Chakra {

class ETFeeder {
 public:
  // Throws std::runtime_error when the file is no trace.
  explicit ETFeeder(const std::string& path) : feeder_(open(path)) { refuse_stuck(); }
  ETFeeder(const ETFeeder&) = delete;
  ETFeeder& operator=(const ETFeeder&) = delete;

  bool hasNodesToIssue() const { return !feeder_.is_finished(); }

  // The first free node, which is then under way; null when none is free.
  std::shared_ptr<ETFeederNode> getNextIssuableNode() {
    chakra_et::NodeView view;
    if (feeder_.next(view) != chakra_et::Next::node) return nullptr;
    return keep(view);
  }

  void pushBackIssuableNode(uint64_t id) { check(feeder_.push_back(id)); }

  std::shared_ptr<ETFeederNode> lookupNode(uint64_t id) {
    auto found = under_way_.find(id);
    if (found != under_way_.end()) return found->second;
    chakra_et::NodeView view = feeder_.node(id);
    if (!view.valid()) check(chakra_et::make_error(chakra_et::Code::unknown_node, id));
    return std::make_shared<ETFeederNode>(view);
  }

  std::vector<std::shared_ptr<ETFeederNode>> getChildren(uint64_t id) {
    std::vector<std::shared_ptr<ETFeederNode>> nodes;
    for (uint64_t child : feeder_.children(id)) nodes.push_back(lookupNode(child));
    return nodes;
  }

  // The node is done. Throws when nodes are left that can never run, and says why.
  void freeChildrenNodes(uint64_t id) {
    check(feeder_.done(id));
    refuse_stuck();
  }

  void removeNode(uint64_t id) { under_way_.erase(id); }

 private:
  static void check(const chakra_et::Error& error) {
    if (error) throw std::runtime_error("chakra-et feeder: " + error.message());
  }

  static chakra_et::Feeder open(const std::string& path) {
    chakra_et::Options options;
#ifndef CHAKRA_ET_FACADE_GATE_CONTROL
    options.gate = chakra_et::edge_all & ~static_cast<uint32_t>(chakra_et::edge_call);
#endif
    chakra_et::Result<chakra_et::Feeder> opened = chakra_et::Feeder::open(path, options);
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(opened.value());
  }

  std::shared_ptr<ETFeederNode> keep(const chakra_et::NodeView& view) {
    std::shared_ptr<ETFeederNode>& node = under_way_[view.id()];
    if (!node) node = std::make_shared<ETFeederNode>(view);
    return node;
  }

  void refuse_stuck() const {
    chakra_et::Counts counts = feeder_.counts();
    if (counts.ready == 0 && counts.taken == 0 && counts.waiting != 0) {
      throw std::runtime_error("chakra-et feeder: nodes are left that can never run: " +
                               feeder_.blocked(8).text());
    }
  }

  chakra_et::Feeder feeder_;
  std::unordered_map<uint64_t, std::shared_ptr<ETFeederNode>> under_way_;
};

}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_FEEDER_H
