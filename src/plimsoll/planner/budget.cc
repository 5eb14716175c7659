#include "plimsoll/planner/budget.h"

#include <algorithm>
#include <set>

namespace plimsoll::planner {

namespace {

using step::Phase;
using step::Program;
using step::TensorSet;

// Programs that may be built and sized for one choice: each takes a time in proportion to its ops.
int64_t affordable_candidates(const Program& program) {
  return std::clamp<int64_t>(60'000 / static_cast<int64_t>(program.ops.size() + 1), 24, 300);
}

struct Candidate {
  std::vector<bool> dropped;
  Seconds recompute;
  Bytes arena;
};

class Search {
 public:
  Search(Bytes budget, const std::vector<SavedGroup>& groups, const PolicyContext& context)
      : budget_(budget),
        groups_(groups),
        context_(context),
        order_(drop_order(groups)),
        left_(affordable_candidates(context.program)) {}

  BudgetChoice run() {
    Candidate best = prefix(0);
    if (best.arena <= budget_) return {.dropped = best.dropped, .least = best.arena};
    best = shortest_prefix();
    if (Candidate full = full_checkpointing(); best.arena > budget_ && full.arena < best.arena) {
      best = std::move(full);
    }
    lower(best);
    if (best.arena > budget_) return {.least = best.arena};
    keep_back(best);
    while (left_ > 0 && improve(best)) {
    }
    return {.dropped = best.dropped, .least = best.arena};
  }

 private:
  Candidate candidate(std::vector<bool> dropped) {
    --left_;
    TensorSet tensors;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (dropped[i]) tensors.insert(groups_[i].tensors.begin(), groups_[i].tensors.end());
    }
    const Program program = step::recompute(context_.program, tensors);
    Candidate result = {.dropped = std::move(dropped), .arena = context_.size(program)};
    for (const step::Op& op : program.ops) {
      if (op.phase != Phase::recompute) continue;
      result.recompute.count += cost::op_time(program, op, context_.device).count;
    }
    return result;
  }
  Candidate with(const Candidate& from, size_t group, bool dropped) {
    std::vector<bool> changed = from.dropped;
    changed[group] = dropped;
    return candidate(std::move(changed));
  }
  Candidate prefix(size_t count) {
    std::vector<bool> dropped(groups_.size(), false);
    for (size_t i = 0; i < count; ++i) dropped[order_[i]] = true;
    return candidate(std::move(dropped));
  }

  Candidate full_checkpointing() {
    std::vector<bool> dropped(groups_.size());
    for (size_t i = 0; i < groups_.size(); ++i) dropped[i] = !groups_[i].enters_layer;
    return candidate(std::move(dropped));
  }

  // Arenas fall along the order but for the size of what is recomputed.
  Candidate shortest_prefix() {
    size_t low = 0, high = order_.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (prefix(middle).arena <= budget_) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return prefix(low);
  }

  // Near the minimum, what is computed again just before the peak costs as much as it saves:
  // makes the best change of one or two groups, else of three, as long as that lowers the arena
  // and it is above the budget.
  void lower(Candidate& best) {
    while (best.arena > budget_ && left_ > 0) {
      std::vector<size_t> groups = dropped_ones(best);
      const std::vector<size_t> kept = kept_ones(best);
      groups.insert(groups.end(), kept.begin(), kept.end());
      const Bytes before = best.arena;
      const std::vector<bool> from = best.dropped;
      for (int changes = 1; changes <= 2; ++changes) try_changes(changes, from, groups, 0, best);
      if (best.arena == before) try_changes(3, from, groups, 0, best);
      if (best.arena == before) return;
    }
  }
  void try_changes(int changes, const std::vector<bool>& dropped, const std::vector<size_t>& groups,
                   size_t from, Candidate& best) {
    if (changes == 0) {
      Candidate next = candidate(dropped);
      if (next.arena < best.arena) best = std::move(next);
      return;
    }
    for (size_t i = from; i < groups.size() && left_ > 0; ++i) {
      std::vector<bool> changed = dropped;
      changed[groups[i]] = !changed[groups[i]];
      try_changes(changes - 1, changed, groups, i + 1, best);
    }
  }

  // One group a name: of those dropped the latest layer, of those kept the earliest, since the
  // early layers are dropped first. By the time of recomputation, or in the drop order.
  std::vector<size_t> dropped_ones(const Candidate& of) const {
    std::vector<size_t> latest;
    std::set<std::string> seen;
    for (size_t i = groups_.size(); i-- > 0;) {
      if (of.dropped[i] && seen.insert(groups_[i].name).second) latest.push_back(i);
    }
    std::stable_sort(latest.begin(), latest.end(), [&](size_t a, size_t b) {
      return groups_[a].recompute > groups_[b].recompute;
    });
    return latest;
  }
  std::vector<size_t> kept_ones(const Candidate& of) const {
    std::vector<size_t> earliest;
    std::set<std::string> seen;
    for (const size_t i : order_) {
      if (!of.dropped[i] && seen.insert(groups_[i].name).second) earliest.push_back(i);
    }
    return earliest;
  }

  // Keeps what can be kept after all, the dearest first.
  void keep_back(Candidate& best) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const size_t group : dropped_ones(best)) {
        if (left_ <= 0) return;
        Candidate next = with(best, group, false);
        if (next.arena > budget_ || next.recompute > best.recompute) continue;
        best = std::move(next);
        changed = true;
      }
    }
  }

  // Drops more, the best value first, until it fits; false when that costs more than `limit`.
  bool drop_until_fits(Candidate& next, size_t kept, Seconds limit) {
    while (next.arena > budget_) {
      const std::vector<size_t> kept_groups = kept_ones(next);
      bool changed = false;
      for (const size_t group : kept_groups) {
        if (group == kept || left_ <= 0) continue;
        Candidate more = with(next, group, true);
        if (more.recompute >= limit || more.arena >= next.arena) continue;
        next = std::move(more);
        changed = true;
        break;
      }
      if (!changed) return false;
    }
    return true;
  }

  // One exchange that makes the step faster: keeping one group for others, or others for one or
  // two.
  bool improve(Candidate& best) {
    for (const size_t group : dropped_ones(best)) {
      if (left_ <= 0) return false;
      Candidate next = with(best, group, false);
      if (next.recompute >= best.recompute) continue;
      if (!drop_until_fits(next, group, best.recompute)) continue;
      keep_back(next);
      best = std::move(next);
      return true;
    }
    const std::vector<size_t> kept = kept_ones(best);
    for (size_t i = 0; i < kept.size(); ++i) {
      for (size_t j = i; j < kept.size(); ++j) {
        if (left_ <= 0) return false;
        std::vector<bool> changed = best.dropped;
        changed[kept[i]] = changed[kept[j]] = true;
        Candidate next = candidate(std::move(changed));
        keep_back(next);
        if (next.recompute >= best.recompute || next.arena > budget_) continue;
        best = std::move(next);
        return true;
      }
    }
    return false;
  }

  const Bytes budget_;
  const std::vector<SavedGroup>& groups_;
  const PolicyContext& context_;
  const std::vector<size_t> order_;
  int64_t left_;
};

}  // namespace

BudgetChoice fit_budget(Bytes budget, const std::vector<SavedGroup>& groups,
                        const PolicyContext& context) {
  return Search(budget, groups, context).run();
}

}  // namespace plimsoll::planner
