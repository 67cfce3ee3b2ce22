// The feeders of many ranks: fair draining, collectives that all members have reached, and who
// waits for whom across ranks. Different ranks may be worked on by different threads; the calls
// that look at all ranks need the others to hold still.
#ifndef CHAKRA_ET_FEEDER_SET_HPP
#define CHAKRA_ET_FEEDER_SET_HPP

#include <map>

#include "feeder.hpp"
#include "groups.hpp"
#include "ranks.hpp"

namespace chakra_et {

struct Member {
  uint64_t rank = 0;
  uint64_t id = 0;
};

struct Collective {
  std::string group;  // pg_name
  uint64_t type = 0;  // comm_type
  std::vector<Member> members;
};

class FeederSet {
 public:
  // The files PREFIX.RANK.et of a directory, or of a prefix such as DIR/trace; and the process
  // groups of comm_groups.json (or comm_group.json) beside them, if there is one. Or the ranks of a
  // packed file.
  static Result<FeederSet> open(const std::string& source, const Options& options = Options()) {
    if (pack::is_zip(source)) return open_packed(source, options);
    FeederSet set;
    Result<std::map<uint64_t, std::string>> files = find_ranks(source);
    if (!files) return files.error();
    for (const auto& file : *files) {
      Result<Feeder> feeder = Feeder::open(file.second, options);
      if (!feeder) return feeder.error();
      set.add(file.first, std::move(feeder.value()));
    }
    if (Error error = set.read_groups_beside(files->begin()->second)) return error;
    return set;
  }

  void add(uint64_t rank, Feeder&& feeder) { feeders_.insert_or_assign(rank, std::move(feeder)); }

  // Who belongs to a process group. Groups that nobody has set are those of the traces' metadata,
  // or else have the members whose traces name them; the group without a name, and "0", have
  // everybody.
  void set_group(const std::string& name, std::vector<uint64_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    groups_[name] = std::move(ranks);
  }

  // Sets the groups of a file: {"1": [0, 2], "2": [1, 3]}. After an error nothing has changed.
  Error read_groups(const std::string& path) {
    Result<Groups> groups = chakra_et::read_groups(path);
    if (!groups) return groups.error();
    for (auto& group : *groups) groups_[group.first] = std::move(group.second);
    return Error{};
  }

  // The ranks of a group, ascending; none if nothing tells of it.
  const std::vector<uint64_t>& members(const std::string& group) {
    learn_groups();
    auto known = groups_.find(group);
    if (known != groups_.end()) return known->second;
    if (group.empty() || group == "0") {
      std::vector<uint64_t>& all = groups_[group];
      for (const auto& entry : feeders_) all.push_back(entry.first);
      return all;
    }
    if (!scanned_) scan_groups();
    return groups_[group];
  }

  size_t size() const { return feeders_.size(); }
  std::map<uint64_t, Feeder>& feeders() { return feeders_; }
  const std::map<uint64_t, Feeder>& feeders() const { return feeders_; }
  Feeder* feeder(uint64_t rank) {
    auto found = feeders_.find(rank);
    return found == feeders_.end() ? nullptr : &found->second;
  }

  // Takes the first ready node of the next rank that has one, rank after rank.
  Next next(uint64_t& rank, NodeView& out) {
    bool pending = false, blocked = false, failed = false;
    auto at = feeders_.upper_bound(last_);
    for (size_t tried = 0; tried < feeders_.size(); ++tried, ++at) {
      if (at == feeders_.end()) at = feeders_.begin();
      switch (at->second.next(out)) {
        case Next::node:
          rank = last_ = at->first;
          return Next::node;
        case Next::pending: pending = true; break;
        case Next::blocked: blocked = true; break;
        case Next::failed: failed = true; break;
        case Next::finished: break;
      }
    }
    if (failed) return Next::failed;
    if (pending) return Next::pending;
    return blocked ? Next::blocked : Next::finished;
  }

  bool is_finished() const {
    for (const auto& entry : feeders_) {
      if (!entry.second.is_finished()) return false;
    }
    return true;
  }

  // The first collective, by group name, whose node is ready on every member. Nothing is taken.
  // `found` is false when there is none yet.
  Error next_collective_ready(Collective& out, bool& found) {
    found = false;
    for (auto& entry : arrivals(false)) {
      const std::vector<uint64_t>& ranks = members(entry.first);
      if (entry.second.size() < ranks.size() || ranks.empty()) continue;
      Collective candidate;
      candidate.group = entry.first;
      for (uint64_t rank : ranks) {
        auto there = entry.second.find(rank);
        if (there == entry.second.end()) break;
        candidate.members.push_back(Member{rank, there->second});
      }
      if (candidate.members.size() != ranks.size()) continue;
      if (Error error = agree(candidate)) return error;
      out = std::move(candidate);
      found = true;
      return Error{};
    }
    return Error{};
  }

  // Why nothing happens, rank by rank, and what the ranks lack from each other.
  std::string blocked(size_t limit = 20) {
    std::string out;
    std::map<uint64_t, Sends> sends;
    for (auto& entry : feeders_) {
      if (entry.second.is_finished()) continue;
      out += "rank " + std::to_string(entry.first) + ": " + entry.second.blocked(limit).text();
      explain_receives(entry.first, entry.second, limit, sends, out);
    }
    for (auto& entry : arrivals(true)) {
      std::vector<std::string> came, absent;
      for (uint64_t rank : members(entry.first)) {
        if (entry.second.count(rank) == 0) absent.push_back(std::to_string(rank));
      }
      if (absent.empty()) continue;
      for (auto& member : entry.second) {
        came.push_back("node " + std::to_string(member.second) + " of rank " +
                       std::to_string(member.first));
      }
      out += "group \"" + entry.first + "\": " + first(came, limit, ", ", "nodes") +
             ", wait for rank " + first(absent, limit, " ", "ranks") + '\n';
    }
    return out;
  }

 private:
  using Arrivals = std::map<std::string, std::map<uint64_t, uint64_t>>;  // group, rank -> node

  static Result<FeederSet> open_packed(const std::string& path, const Options& options) {
#ifdef CHAKRA_ET_WITH_ZSTD
    Result<pack::Pack> pack = pack::Pack::open(path);
    if (!pack) return pack.error();
    FeederSet set;
    Result<Groups> groups = pack->groups();
    if (!groups) return groups.error();
    set.groups_ = std::move(groups.value());
    for (const pack::Entry& entry : pack->entries()) {
      Result<Blob> rank = pack->read(entry, options.max_input);
      if (!rank) return rank.error();
      Result<Feeder> feeder = Feeder::from_blob(std::move(rank.value()), options);
      if (!feeder) return in_file(feeder.error(), path + "/" + pack->name(entry));
      set.add(entry.rank, std::move(feeder.value()));
    }
    return set;
#else
    (void)options;
    return in_file(make_error(Code::unsupported, 0, 0, 0, "packed ETs (CHAKRA_ET_WITH_ZSTD)"), path);
#endif
  }

  static std::string group_of(const NodeView& node) {
    return std::string(node.pg_name().value_or(std::string_view()));
  }

  // Per group and rank the first collective that is ready, or taken if those count as well.
  Arrivals arrivals(bool with_taken) const {
    Arrivals out;
    for (const auto& entry : feeders_) {
      auto arrive = [&](uint64_t id) {
        NodeView node = entry.second.node(id);
        if (node.type() == NodeType::comm_coll) out[group_of(node)].emplace(entry.first, id);
      };
      if (with_taken) entry.second.engine().each_taken(arrive);
      for (uint64_t id : entry.second.ready()) arrive(id);
    }
    return out;
  }

  static bool exists(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    return file != nullptr && std::fclose(file) == 0;
  }

  Error read_groups_beside(const std::string& path) {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const char* name : {"comm_groups.json", "comm_group.json"}) {
      if (exists((folder / name).string())) return read_groups((folder / name).string());
    }
    return Error{};
  }

  // The groups of the traces' metadata, as far as nobody has set them.
  void learn_groups() {
    if (learned_) return;
    learned_ = true;
    for (const auto& entry : feeders_) {
      auto text = entry.second.metadata().attr("process_groups").as_string();
      if (!text) continue;
      for (auto& group : parse_told_groups(*text)) groups_.emplace(group.first, group.second);
    }
  }

  void scan_groups() {
    scanned_ = true;
    Groups named;
    for (const auto& entry : feeders_) {
      entry.second.engine().each_node([&](const NodeView& node) {
        if (node.type() != NodeType::comm_coll) return;
        std::vector<uint64_t>& ranks = named[group_of(node)];
        if (ranks.empty() || ranks.back() != entry.first) ranks.push_back(entry.first);
      });
    }
    for (auto& entry : named) groups_.emplace(entry.first, std::move(entry.second));
  }

  Error agree(Collective& collective) {
    bool first = true;
    std::optional<uint64_t> size;
    for (const Member& member : collective.members) {
      NodeView node = feeders_.find(member.rank)->second.node(member.id);
      uint64_t type = node.comm_type().value_or(0);
      if (first) {
        collective.type = type;
        size = node.comm_size();
        first = false;
      } else if (type != collective.type) {
        return make_error(Code::mismatch, member.id, member.rank, 0, "its ranks name other types");
      } else if (type == static_cast<uint64_t>(CollectiveType::all_reduce) &&
                 node.comm_size() != size) {
        return make_error(Code::mismatch, member.id, member.rank, 0, "its ranks name other sizes");
      }
    }
    return Error{};
  }

  // The sends of a rank, in order of their ids, by receiving rank and tag.
  using Sends = std::map<std::pair<int64_t, int64_t>, std::vector<uint64_t>>;

  // The first texts, and how many more there are.
  static std::string first(const std::vector<std::string>& texts, size_t limit,
                           const std::string& between, const std::string& what) {
    std::string out;
    for (size_t i = 0; i < texts.size() && i < limit; ++i) out += (i == 0 ? "" : between) + texts[i];
    if (texts.size() <= limit) return out;
    return out + between + "and " + std::to_string(texts.size() - limit) + " more " + what;
  }

  // For each receive that is ready or taken: is there a send for it?
  void explain_receives(uint64_t rank, const Feeder& feeder, size_t limit,
                        std::map<uint64_t, Sends>& sends, std::string& out) const {
    std::map<std::pair<int64_t, int64_t>, uint64_t> earlier;  // (source, tag) -> receives so far
    size_t told = 0;
    feeder.engine().each_node([&](const NodeView& node) {
      if (node.type() != NodeType::comm_recv || !node.comm_src()) return;
      int64_t source = *node.comm_src(), tag = node.comm_tag().value_or(0);
      uint64_t nth = earlier[{source, tag}]++;
      State state = feeder.state(node.id());
      if ((state != State::ready && state != State::taken) || ++told > limit) return;
      auto from = static_cast<uint64_t>(source);
      out += "node " + std::to_string(node.id()) + " receives from rank " +
             std::to_string(source) + " with tag " + std::to_string(tag) + ": " +
             sender(from, {static_cast<int64_t>(rank), tag}, nth, sends) + '\n';
    });
    if (told > limit) out += "and " + std::to_string(told - limit) + " more receives\n";
  }

  // What became of the nth send of `source` to a (rank, tag); `sends` grows by `source`.
  std::string sender(uint64_t source, std::pair<int64_t, int64_t> wanted, uint64_t nth,
                     std::map<uint64_t, Sends>& sends) const {
    auto found = feeders_.find(source);
    if (found == feeders_.end()) return "no such rank";
    if (sends.count(source) == 0) sends[source] = sends_of(found->second);
    const std::vector<uint64_t>& nodes = sends[source][wanted];
    if (nth >= nodes.size()) return "no send for it";
    return "sent by node " + std::to_string(nodes[nth]) + ", which is " +
           state_name(found->second.state(nodes[nth]));
  }

  static Sends sends_of(const Feeder& feeder) {
    Sends out;
    feeder.engine().each_node([&](const NodeView& node) {
      if (node.type() != NodeType::comm_send || !node.comm_dst()) return;
      out[{*node.comm_dst(), node.comm_tag().value_or(0)}].push_back(node.id());
    });
    return out;
  }

  std::map<uint64_t, Feeder> feeders_;
  Groups groups_;
  uint64_t last_ = UINT64_MAX;
  bool learned_ = false, scanned_ = false;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_FEEDER_SET_HPP
