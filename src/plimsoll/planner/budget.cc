#include "plimsoll/planner/budget.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace plimsoll::planner {

namespace {

constexpr int64_t most_candidates = 600;
constexpr int64_t most_work = 8'000'000;  // Sizer::work: some tenths of a second

struct Candidate {
  std::vector<bool> dropped;
  Seconds recompute;
  Bytes arena;  // exact where it is within the budget, else what must live at once
};

class Search {
 public:
  Search(Bytes budget, const std::vector<SavedGroup>& groups, Sizer& sizer)
      : budget_(budget),
        groups_(groups),
        sizer_(sizer),
        order_(drop_order(groups)),
        end_of_work_(sizer.work() + most_work) {}

  BudgetChoice run() {
    Candidate best = prefix(0);
    if (best.arena <= budget_) return chosen(best);
    best = shortest_prefix();
    if (Candidate full = full_recomputation(); best.arena > budget_ && full.arena < best.arena) {
      best = std::move(full);
    }
    lower(best);
    if (best.arena > budget_) return {.least = best.arena, .least_dropped = best.dropped};
    keep_back(best);
    while (!exhausted() && improve(best)) {
    }
    return chosen(best);
  }

 private:
  static BudgetChoice chosen(const Candidate& best) {
    return {.dropped = best.dropped, .least = best.arena, .least_dropped = best.dropped};
  }
  bool exhausted() const { return left_ <= 0 || sizer_.work() >= end_of_work_; }

  // One that recomputes for longer than `limit` is of no use and is not placed.
  Candidate candidate(std::vector<bool> dropped, Seconds limit = {HUGE_VAL}) {
    --left_;
    const std::vector<bool> tensors = tensors_of(groups_, dropped, sizer_.tensors());
    const Sized sized = sizer_.size(tensors);
    Candidate result = {.dropped = std::move(dropped),
                        .recompute = sized.recompute,
                        .arena = sized.arena_bound};
    if (result.arena <= budget_ && result.recompute <= limit) {
      result.arena = sizer_.arena(tensors);
    }
    return result;
  }
  Candidate with(const Candidate& from, size_t group, bool dropped, Seconds limit) {
    std::vector<bool> changed = from.dropped;
    changed[group] = dropped;
    return candidate(std::move(changed), limit);
  }
  Candidate prefix(size_t count) {
    std::vector<bool> dropped(groups_.size(), false);
    for (size_t i = 0; i < count; ++i) dropped[order_[i]] = true;
    return candidate(std::move(dropped));
  }

  Candidate full_recomputation() {
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
    while (best.arena > budget_ && !exhausted()) {
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
    for (size_t i = from; i < groups.size() && !exhausted(); ++i) {
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
        if (exhausted()) return;
        Candidate next = with(best, group, false, best.recompute);
        if (next.recompute > best.recompute || next.arena > budget_) continue;
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
        if (group == kept || exhausted()) continue;
        Candidate more = with(next, group, true, limit);
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
      if (exhausted()) return false;
      Candidate next = with(best, group, false, best.recompute);
      if (next.recompute >= best.recompute) continue;
      if (!drop_until_fits(next, group, best.recompute)) continue;
      keep_back(next);
      best = std::move(next);
      return true;
    }
    const std::vector<size_t> kept = kept_ones(best);
    for (size_t i = 0; i < kept.size(); ++i) {
      for (size_t j = i; j < kept.size(); ++j) {
        if (exhausted()) return false;
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
  Sizer& sizer_;
  const std::vector<size_t> order_;
  const int64_t end_of_work_;
  int64_t left_ = most_candidates;
};

}  // namespace

BudgetChoice fit_budget(Bytes budget, const std::vector<SavedGroup>& groups, Sizer& sizer) {
  return Search(budget, groups, sizer).run();
}

}  // namespace plimsoll::planner
