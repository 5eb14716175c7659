#include "plimsoll/step/gradient.h"

#include <type_traits>

namespace plimsoll::step {

std::optional<TensorId> GradientBuilder::gradient(TensorId activation) const {
  const auto found = gradients_.find(activation);
  if (found == gradients_.end()) return std::nullopt;
  return found->second;
}

void GradientBuilder::set_gradient(TensorId activation, TensorId gradient) {
  gradients_[activation] = gradient;
  lent_.erase(activation);
}

void GradientBuilder::lend_gradient(TensorId activation, TensorId gradient) {
  gradients_[activation] = gradient;
  lent_.insert(activation);
}

TensorId GradientBuilder::new_gradient(TensorId activation) {
  return new_gradient(activation, program_.tensor(activation).type);
}

TensorId GradientBuilder::new_gradient(TensorId activation, TensorType type) {
  const TensorId id = add_tensor(program_, {.name = program_.tensor(activation).name + ".grad",
                                            .type = type,
                                            .role = Role::activation,
                                            .layer = layer_});
  gradients_[activation] = id;
  return id;
}

TensorId GradientBuilder::weight_gradient(TensorId weight) const {
  const auto found = weight_gradients_.find(weight);
  check(found != weight_gradients_.end(),
        fmt::format("{} has no gradient to accumulate in", program_.tensor(weight).name));
  return found->second;
}

void GradientBuilder::emit(OpKind kind, std::vector<Operand> inputs, std::vector<Operand> outputs) {
  append(program_, {.kind = std::move(kind),
                    .inputs = std::move(inputs),
                    .outputs = std::move(outputs),
                    .phase = Phase::backward,
                    .layer = layer_});
}

bool GradientBuilder::accumulates(TensorId activation) const {
  check(!lent_.contains(activation), fmt::format("a second contribution to the lent gradient of {}",
                                                 program_.tensor(activation).name));
  return gradients_.contains(activation);
}

void differentiate_range(GradientBuilder& builder, int begin, int end) {
  for (int i = end - 1; i >= begin; --i) {
    const Op op = builder.program_.ops[static_cast<size_t>(i)];  // a copy: emit moves the ops
    builder.layer_ = op.layer;
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (!std::is_base_of_v<NotDifferentiated, Kind>) {
            differentiate(kind, op, builder);
          } else {
            check(false, fmt::format("{} is not differentiated", kind_name(kind)));
          }
        },
        op.kind);
  }
}

}  // namespace plimsoll::step
