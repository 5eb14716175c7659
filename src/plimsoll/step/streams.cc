#include "plimsoll/step/streams.h"

#include <algorithm>

namespace plimsoll::step {

StreamOrder::StreamOrder(const Program& program) {
  const auto& ops = program.ops;
  several_ = std::any_of(ops.begin(), ops.end(),
                         [&](const Op& op) { return op.stream != ops.front().stream; });
  if (!several_) return;

  Ended none;
  none.fill(-1);
  std::array<Ended, stream_count> newest;  // of the last op of each stream
  newest.fill(none);
  std::array<std::vector<int>, stream_count> ops_of;
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto stream = static_cast<size_t>(ops[i].stream);
    Ended ended = newest[stream];
    for (const int other : ops[i].after) {
      for (size_t s = 0; s < ended.size(); ++s) {
        ended[s] = std::max(ended[s], ended_[static_cast<size_t>(other)][s]);
      }
    }
    ended[stream] = static_cast<int>(i);
    newest[stream] = ended;
    streams_.push_back(static_cast<int>(stream));
    ended_.push_back(ended);
    ops_of[stream].push_back(static_cast<int>(i));
  }

  // What has ended grows along each stream, so the first op of a stream that comes after op i lies
  // no earlier than the one that comes after the op before i on its own stream.
  last_beside_.resize(ops.size());
  std::array<std::array<size_t, stream_count>, stream_count> first_after = {};
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto own = static_cast<size_t>(streams_[i]);
    int last = static_cast<int>(i);
    for (size_t s = 0; s < stream_count; ++s) {
      size_t& next = first_after[own][s];
      const auto& list = ops_of[s];
      while (next < list.size() &&
             ended_[static_cast<size_t>(list[next])][own] < static_cast<int>(i)) {
        ++next;
      }
      if (next > 0) last = std::max(last, list[next - 1]);
    }
    last_beside_[i] = last;
  }
}

bool StreamOrder::ends_before(int first, int second) const {
  if (!several_) return first < second;
  const auto stream = static_cast<size_t>(streams_[static_cast<size_t>(first)]);
  return first < second && ended_[static_cast<size_t>(second)][stream] >= first;
}

}  // namespace plimsoll::step
