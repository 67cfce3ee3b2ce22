// Edges in rows, and chains of them: what `in_rows` in model/edges.py and `chains` in
// graph/transitive_reduction.py find, which say why.
#ifndef CHAKRA_ET_KERNEL_EDGES_HPP
#define CHAKRA_ET_KERNEL_EDGES_HPP

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace chakra_et {
namespace kernel {

struct GivenEdges {
  const int64_t* target;
  const uint64_t* source;
  const bool *other, *lesser;  // no calls; less good than others between the same two nodes
  size_t size;
};

// The places of edges by target, calls first, by source; each edge once, the best of equal ones.
// False for targets that there are none of.
inline bool edges_in_rows(const GivenEdges& edges, size_t nodes, std::vector<int64_t>& places) {
  std::vector<uint32_t> begin(nodes + 1, 0);
  for (size_t i = 0; i < edges.size; ++i) {
    if (static_cast<uint64_t>(edges.target[i]) >= nodes) return false;
    ++begin[static_cast<size_t>(edges.target[i]) + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<uint32_t> order(edges.size), next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < edges.size; ++i) {
    order[next[static_cast<size_t>(edges.target[i])]++] = static_cast<uint32_t>(i);
  }
  auto comes_first = [&](uint32_t one, uint32_t another) {
    if (edges.other[one] != edges.other[another]) return !edges.other[one];
    if (edges.source[one] != edges.source[another]) return edges.source[one] < edges.source[another];
    return edges.lesser[one] < edges.lesser[another];
  };
  places.reserve(edges.size);
  for (size_t node = 0; node < nodes; ++node) {
    auto from = order.begin() + begin[node], to = order.begin() + begin[node + 1];
    if (!std::is_sorted(from, to, comes_first)) std::stable_sort(from, to, comes_first);
    for (auto at = from; at != to; ++at) {
      bool again = at != from && edges.source[*at] == edges.source[*(at - 1)] &&
                   edges.other[*at] == edges.other[*(at - 1)];
      if (!again) places.push_back(*at);
    }
  }
  return true;
}

struct Chains {
  std::vector<int64_t> chain;
  std::vector<uint8_t> linked;
};

// The chain of each node along some of the edges, and which of these are along chains. False for
// edges of nodes that there are none of, and for those that do not lead forward.
inline bool find_chains(const int64_t* source, const int64_t* target, const bool* in_order,
                        size_t edges, size_t nodes, Chains& found) {
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < edges; ++i) {
    if (!in_order[i]) continue;
    if (source[i] < 0 || source[i] >= target[i]) return false;
    if (static_cast<uint64_t>(target[i]) >= nodes) return false;
    rows.push_back(static_cast<uint32_t>(i));
  }
  auto comes_first = [&](uint32_t one, uint32_t other) {
    return target[one] != target[other] ? target[one] < target[other] : source[one] < source[other];
  };
  if (!std::is_sorted(rows.begin(), rows.end(), comes_first)) {
    std::stable_sort(rows.begin(), rows.end(), comes_first);
  }
  std::vector<int64_t> before(nodes, -1);
  std::vector<bool> left(nodes);
  found.linked.assign(edges, 0);
  for (uint32_t row : rows) {
    auto from = static_cast<size_t>(source[row]), to = static_cast<size_t>(target[row]);
    if (left[from]) continue;
    left[from] = true;
    if (before[to] != -1) continue;
    before[to] = source[row];
    found.linked[row] = 1;
  }
  found.chain.resize(nodes);
  int64_t chains = 0;
  for (size_t node = 0; node < nodes; ++node) {
    found.chain[node] = before[node] == -1 ? chains++ : found.chain[before[node]];
  }
  return true;
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_EDGES_HPP
