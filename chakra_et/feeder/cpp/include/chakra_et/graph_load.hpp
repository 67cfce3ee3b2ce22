// One pass over a whole trace: where each node lies, how many parents it waits for, and who waits
// for it (compressed rows). About 24 bytes per node when ids are dense and nodes have two parents.
#ifndef CHAKRA_ET_GRAPH_LOAD_HPP
#define CHAKRA_ET_GRAPH_LOAD_HPP

#include "engine.hpp"
#include "ids.hpp"
#include "source.hpp"

namespace chakra_et {

struct GraphData {
  Ids ids;
  PodVector<uint64_t> offsets;    // of each record, by place
  PodVector<uint32_t> needs;      // parents that are not done, by place
  PodVector<uint32_t> row;        // children of i: children[row[i]] up to children[row[i + 1]]
  PodVector<uint32_t> children;
  PodVector<uint32_t> stuck;      // places that wait for ever, once per such edge
  PodVector<uint32_t> metadata;   // places of metadata nodes, when they are to be skipped
  PodVector<int64_t> starts;      // start times by place, when they order the nodes
  wire::Span first_record;        // the metadata record, if there is one
};

class GraphLoader {
 public:
  GraphLoader(wire::Span input, const Options& options, GraphData& out)
      : input_(input), options_(options), out_(out) {}

  Error load() {
    if (Error error = scan()) return error;
    if (Error error = out_.ids.finish(place_)) return error;
    if (!place_.empty()) {
      if (!reorder(out_.offsets) || !reorder(out_.starts)) return make_error(Code::out_of_memory);
      for (uint32_t& i : out_.metadata) i = place_[i];
    }
    if (Error error = count_children()) return error;
    return fill_children();
  }

 private:
  static constexpr uint64_t dropped = UINT64_MAX;
  static constexpr uint64_t max_edges = UINT32_MAX - 1;

  Error scan() {
    wire::Span rest = input_;
    bool first = true;
    while (rest.begin != rest.end) {
      auto offset = static_cast<uint64_t>(rest.begin - input_.begin);
      wire::Span record;
      if (Error error = frames::cut(rest, offset, options_.max_record, record)) return error;
      if (first) {
        first = false;
        if (Error error = frames::require_metadata(record, offset)) return error;
        out_.first_record = record;
        continue;
      }
      if (Error error = frames::require_node(record, offset)) return error;
      if (Error error = scan_node(record, offset)) return error;
    }
    if (first) return make_error(Code::truncated);
    out_.offsets.shrink();
    return Error{};
  }

  Error scan_node(wire::Span record, uint64_t offset) {
    size_t edges_before = raw_.size();
    uint64_t id = 0, type = 0;
    bool ok = options_.gate == edge_all ? scan_plain(record, id, type)
                                        : scan_gated(record, id, type);
    if (!ok) {
      return short_of_memory_ ? make_error(Code::out_of_memory)
                              : make_error(Code::malformed, id, 0, offset, "its fields are cut");
    }
    if (raw_.size() > max_edges || out_.offsets.size() > max_edges) {
      return make_error(Code::too_large, id, raw_.size(), offset, "more than 2^32 edges");
    }
    bool kept = out_.ids.push(id) && out_.offsets.push(offset) &&
                counts_.push(static_cast<uint32_t>(raw_.size() - edges_before));
    if (kept && options_.skip_metadata && type == static_cast<uint64_t>(NodeType::metadata)) {
      kept = out_.metadata.push(static_cast<uint32_t>(out_.offsets.size() - 1));
    }
    if (kept && options_.order == Order::start) {
      NodeView node(record);  // nodes without a start come last
      kept = out_.starts.push(node.has_start() ? node.start_ns() : INT64_MAX);
    }
    return kept ? Error{} : make_error(Code::out_of_memory);
  }

  bool keep_edge(uint64_t parent) {
    if (raw_.push(parent)) return true;
    short_of_memory_ = true;
    return false;
  }

  // The hot loop: the tags that writers use, one byte each; anything else takes the slow way.
  bool scan_plain(wire::Span record, uint64_t& id, uint64_t& type) {
    const wire::Byte* p = record.begin;
    wire::Field field;
    while (p != record.end) {
      switch (*p) {
        case field::id << 3 | wire::varint:
          if (!wire::read_varint(++p, record.end, id)) return false;
          continue;
        case field::ctrl_deps << 3 | wire::bytes:
        case field::data_deps << 3 | wire::bytes: {
          wire::Span packed;
          if (!wire::read_length(++p, record.end, packed)) return false;
          if (!keep_packed(packed)) return false;
          continue;
        }
        default:
          break;
      }
      if (wire::next_field(p, record.end, field) != wire::Step::field) return false;
      if (field.number == field::id && field.type == wire::varint) id = field.value;
      if (field.number == field::type && field.type == wire::varint) type = field.value;
      if (field.number == field::ctrl_deps || field.number == field::data_deps) {
        if (field.type == wire::varint && !keep_edge(field.value)) return false;
        if (field.type == wire::bytes && !keep_packed(field.data)) return false;
      }
    }
    return true;
  }

  bool keep_packed(wire::Span packed) {
    for (const wire::Byte* p = packed.begin; p != packed.end;) {
      uint64_t parent = 0;
      if (!wire::read_varint(p, packed.end, parent) || !keep_edge(parent)) return false;
    }
    return true;
  }

  bool scan_gated(wire::Span record, uint64_t& id, uint64_t& type) {
    NodeView node(record);
    if (node.malformed() || !node.each_dep([](uint64_t, bool) { return true; })) return false;
    id = node.id();
    type = node.type_number();
    for (const Edge& edge : gating_parents(node, options_.gate)) {
      if (!keep_edge(edge.id)) return false;
    }
    return true;
  }

  uint32_t place_of(uint64_t file_position) const {
    return place_.empty() ? static_cast<uint32_t>(file_position) : place_[file_position];
  }

  // Turns each parent's id into its place, and counts children per parent.
  Error count_children() {
    uint64_t n = out_.ids.size();
    if (!out_.row.assign_zero(n + 1) || !out_.needs.assign_zero(n)) {
      return make_error(Code::out_of_memory);
    }
    uint64_t edge = 0;
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t child = place_of(i), need = counts_[i];
      for (uint64_t stop = edge + need; edge < stop; ++edge) {
        uint32_t parent = out_.ids.find(raw_[edge]);
        if (parent != Ids::none && parent != child) {
          raw_[edge] = parent;
          ++out_.row[parent + 1];
          continue;
        }
        bool missing = parent == Ids::none;
        Fault fault = missing ? options_.missing_parent : options_.self_edge;
        if (fault == Fault::fail) {
          return make_error(missing ? Code::missing_parent : Code::self_edge, out_.ids[child],
                            raw_[edge], out_.offsets[child]);
        }
        raw_[edge] = dropped;
        if (fault == Fault::drop) {
          --need;
        } else if (!out_.stuck.push(child)) {
          return make_error(Code::out_of_memory);
        }
      }
      out_.needs[child] = need;
    }
    return Error{};
  }

  Error fill_children() {
    uint64_t n = out_.ids.size();
    for (uint64_t i = 0; i < n; ++i) out_.row[i + 1] += out_.row[i];
    if (!out_.children.assign_zero(out_.row[n])) return make_error(Code::out_of_memory);
    // Fill from the back, moving each row's end down to its start.
    uint64_t edge = raw_.size();
    for (uint64_t i = n; i-- > 0;) {
      uint32_t child = place_of(i);
      for (uint64_t stop = edge - counts_[i]; edge > stop;) {
        uint64_t parent = raw_[--edge];
        if (parent != dropped) out_.children[--out_.row[parent + 1]] = child;
      }
    }
    // Now row[i + 1] is where row i starts: shift by one.
    for (uint64_t i = 0; i < n; ++i) out_.row[i] = out_.row[i + 1];
    out_.row[n] = static_cast<uint32_t>(out_.children.size());
    return Error{};
  }

  template <class T>
  bool reorder(PodVector<T>& values) {
    if (values.empty()) return true;
    PodVector<T> sorted;
    if (!sorted.assign_zero(values.size())) return false;
    for (uint64_t i = 0; i < values.size(); ++i) sorted[place_[i]] = values[i];
    values.swap(sorted);
    return true;
  }

  wire::Span input_;
  const Options& options_;
  GraphData& out_;
  PodVector<uint64_t> raw_;     // parents, node after node in file order
  PodVector<uint32_t> counts_;  // how many of them each node has
  PodVector<uint32_t> place_;   // file position -> place in id order; empty: the same
  bool short_of_memory_ = false;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_GRAPH_LOAD_HPP
