#include "plimsoll/runtime/cpu/kernels/quantize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/reference/quantize.h"
#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

// A tensor of any format, full of 0xff, aligned to its elements only.
struct RawTensor {
  RawTensor(Format format, int64_t rows, int64_t columns)
      : bytes(format == Format::f32   ? Tensor(Format::f32, rows, columns)
              : format == Format::f16 ? Tensor(Format::bf16, rows, columns)
                                      : Tensor(Format::e4m3, 1, bytes_of(format, rows * columns))),
        view{bytes.view().data, format, rows, columns} {
    std::memset(view.data, 0xff, bytes.view().bytes().size());
  }
  Tensor bytes;
  View view;
};

// The tensors of one quantised matrix.
struct QuantizedTensors {
  QuantizedTensors(const Quantization& q, int64_t rows, int64_t columns)
      : codes(q.format, rows, padded_columns(q.scaling, columns)),
        scales(scale_format(q.scaling),
               has_block_scales(q.scaling) ? scale_rows(q.scaling, rows) : 0,
               padded_columns(q.scaling, columns) / block_columns(q.scaling)),
        tensor_scale(Format::f32, has_tensor_scale(q.scaling) ? 1 : 0, 2) {}
  QuantizedView view() const {
    return {codes.view, scales.view.rows > 0 ? scales.view : View{},
            tensor_scale.view.rows > 0 ? tensor_scale.view : View{}};
  }
  RawTensor codes, scales, tensor_scale;
};

struct QuantizeCase {
  step::Quantize kind;
  int64_t rows = 1, columns = 1;
  std::vector<bf16> x;
  QuantizerControl control;
  std::vector<float> state;
};

std::string describe(const Quantization& q) {
  return fmt::format("{} scaling {} pow2 {} rule {} variant {} stochastic {} hadamard {}",
                     name(q.format), static_cast<int>(q.scaling), q.power_of_two,
                     static_cast<int>(q.mx_rule), static_cast<int>(q.variant), q.stochastic,
                     q.hadamard);
}

int64_t size_near_borders(int64_t largest) {
  if (Draw::flag()) return Draw::size(1, largest);
  const int64_t border = *rc::gen::element<int64_t>(1, 16, 32, 48, 96, 128, 256);
  return std::clamp<int64_t>(border + Draw::size(-1, 1), 1, largest);
}

// Cells of 16 x 16 that are zero, tiny, ordinary or huge; in some cases Inf and NaN here and there.
std::vector<bf16> draw_values(int64_t rows, int64_t columns) {
  std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
  std::normal_distribution<float> normal;
  const bool one_size = Draw::flag();
  const int specials = *rc::gen::element(0, 0, 3, 200);
  const std::vector<float> scales = {0, 0x1p-130f, 0x1p-20f, 1, 1, 300, 0x1p126f};
  std::vector<float> of_cell((rows / 16 + 1) * (columns / 16 + 1));
  float scale = scales[random() % scales.size()];
  for (float& cell : of_cell) cell = one_size ? scale : scales[random() % scales.size()];
  std::vector<bf16> x(rows * columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t row = i / columns, column = i % columns;
    x[i] = bf16(normal(random) * of_cell[row / 16 * (columns / 16 + 1) + column / 16]);
  }
  for (int i = 0; i < specials; ++i) {
    constexpr uint16_t bits[] = {0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81, 0x7f7f, 0xff7f, 0x8000};
    x[random() % x.size()].bits = bits[random() % 8];
  }
  return x;
}

QuantizeCase draw_case(const Quantization& rows, const Quantization& columns) {
  QuantizeCase c;
  c.kind.has_rows = *rc::gen::element(true, true, false);
  c.kind.has_columns = !c.kind.has_rows || Draw::flag();
  c.kind.rows = rows;
  c.kind.columns = columns;
  c.kind.layer = static_cast<uint32_t>(Draw::size(0, 100));
  c.kind.tensor = static_cast<uint32_t>(Draw::size(0, 100));
  c.rows = size_near_borders(300);
  c.columns = size_near_borders(300);
  c.x = draw_values(c.rows, c.columns);
  c.control.seed_low = *rc::gen::arbitrary<uint32_t>();
  c.control.seed_high = *rc::gen::arbitrary<uint32_t>();
  c.control.step = static_cast<uint32_t>(Draw::size(0, 1000));
  c.control.micro_step = static_cast<uint32_t>(Draw::size(0, 10));
  c.control.observe = Draw::flag();
  c.control.collect = Draw::flag();
  c.control.loss_scale_log2 = *rc::gen::element(0, 4, 16, -10);
  if (rows.scaling == Scaling::delayed) {
    c.state.resize(static_cast<size_t>(Draw::size(2, 5)));
    c.state[0] = *rc::gen::element(0.0f, 1.0f, 1e30f);
    c.state.back() = *rc::gen::element(0.0f, 3.7f, 0x1p-100f, 1e30f);
  }
  return c;
}

std::vector<Tensor> run_kernel(const QuantizeCase& c) {
  const Tensor x(Format::bf16, c.rows, c.columns);
  std::memcpy(x.view().data, c.x.data(), c.x.size() * sizeof(bf16));
  const QuantizedTensors rows(c.kind.rows, c.kind.has_rows ? c.rows : 0, c.columns);
  const QuantizedTensors columns(c.kind.columns, c.kind.has_columns ? c.columns : 0, c.rows);
  QuantizerStatistics statistics;
  const Tensor state(Format::f32, 1, std::ssize(c.state), {c.state.begin(), c.state.end()});
  const Scratch scratch(quantize_workspace(c.kind, c.rows, c.columns));
  quantize(c.kind, x.view(), c.control, state.view().span<float>(), statistics,
           c.kind.has_rows ? rows.view() : QuantizedView{},
           c.kind.has_columns ? columns.view() : QuantizedView{}, scratch.span());
  const Tensor sums(Format::f32, 1, 8);
  std::memcpy(sums.view().data, &statistics, sizeof(statistics));
  return {rows.codes.bytes,
          rows.scales.bytes,
          rows.tensor_scale.bytes,
          columns.codes.bytes,
          columns.scales.bytes,
          columns.tensor_scale.bytes,
          state,
          sums};
}

template <class T>
void expect_bytes(std::string_view what, const Quantization& q, const Tensor& actual,
                  const std::vector<T>& expected) {
  const std::span<const std::byte> bytes = actual.view().bytes();
  const auto* wanted = reinterpret_cast<const std::byte*>(expected.data());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.size() != expected.size() * sizeof(T) || bytes[i] != wanted[i]) {
      RC_FAIL(fmt::format(
          "{} of {}: byte {} of {} is {:02x}, the reference says {:02x} (target {})", what,
          describe(q), i, bytes.size(), static_cast<int>(bytes[i]), static_cast<int>(wanted[i]),
          hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets())));
    }
  }
}

void expect_statistics(const Tensor& actual, const QuantizerStatistics& expected) {
  QuantizerStatistics s;
  std::memcpy(&s, actual.view().data, sizeof(s));
  RC_ASSERT(s.not_finite == expected.not_finite);
  RC_ASSERT(s.elements == expected.elements);
  RC_ASSERT(s.saturated == expected.saturated);
  RC_ASSERT(s.flushed == expected.flushed);
  RC_ASSERT(s.least_scale == expected.least_scale);
  RC_ASSERT(s.largest_scale == expected.largest_scale);
  RC_ASSERT(s.signal == expected.signal ||
            std::abs(s.signal - expected.signal) <= 1e-6f * expected.signal);
  RC_ASSERT(s.noise == expected.noise ||
            std::abs(s.noise - expected.noise) <= 1e-6f * expected.noise);
}

void expect_as_reference(const QuantizeCase& c) {
  std::vector<float> state = c.state;
  QuantizerStatistics statistics;
  const reference::QuantizeResult expected =
      reference::quantize(c.kind, c.x, c.columns, c.control, state, statistics);
  on_every_target([&] { return run_kernel(c); },
                  [&](const std::vector<Tensor>& out) {
                    if (c.kind.has_rows) {
                      const Quantization& q = c.kind.rows;
                      expect_bytes("codes", q, out[0], expected.rows.codes);
                      expect_bytes("scales", q, out[1], expected.rows.scales);
                      expect_bytes("tensor scale", q, out[2], expected.rows.tensor_scale);
                    }
                    if (c.kind.has_columns) {
                      const Quantization& q = c.kind.columns;
                      expect_bytes("codes of x^T", q, out[3], expected.columns.codes);
                      expect_bytes("scales of x^T", q, out[4], expected.columns.scales);
                      expect_bytes("tensor scale of x^T", q, out[5], expected.columns.tensor_scale);
                    }
                    expect_bytes("state", c.kind.rows, out[6], state);
                    expect_statistics(out[7], statistics);
                  });
}

Format fp8() { return *rc::gen::element(Format::e4m3, Format::e5m2); }

Quantization draw_scaled_as_a_whole() {
  Quantization q;
  q.scaling = *rc::gen::element(Scaling::loss, Scaling::current, Scaling::delayed);
  q.format = q.scaling == Scaling::loss ? Format::f16 : fp8();
  q.power_of_two = Draw::flag();
  return q;
}

Quantization draw_scaled_by_powers_of_two() {
  Quantization q;
  q.scaling = *rc::gen::element(Scaling::block_1x128, Scaling::block_128x128, Scaling::mx);
  q.format = fp8();
  q.mx_rule = *rc::gen::element(MxRule::round_up, MxRule::floor);
  return q;
}

Quantization draw_nvfp4() {
  Quantization q;
  q.scaling = *rc::gen::element(Scaling::nvfp4_1x16, Scaling::nvfp4_16x16);
  q.format = Format::e2m1;
  q.variant = *rc::gen::element(Nvfp4Variant::te, Nvfp4Variant::paper, Nvfp4Variant::torchao);
  q.stochastic = Draw::flag();
  q.hadamard = Draw::flag();
  return q;
}

RC_GTEST_PROP(Quantize, OfWholeTensorsEqualsTheReference, ()) {
  const Quantization q = draw_scaled_as_a_whole();
  expect_as_reference(draw_case(q, q));
}

RC_GTEST_PROP(Quantize, OfBlocksEqualsTheReference, ()) {
  const Quantization q = draw_scaled_by_powers_of_two();
  expect_as_reference(draw_case(q, Draw::flag() ? q : draw_scaled_by_powers_of_two()));
}

RC_GTEST_PROP(Quantize, OfNvfp4EqualsTheReference, ()) {
  const Quantization q = draw_nvfp4();
  expect_as_reference(draw_case(q, Draw::flag() ? q : draw_nvfp4()));
}

RC_GTEST_PROP(Quantize, AgainGivesTheSame, ()) {
  Quantization q = Draw::flag() ? draw_nvfp4() : draw_scaled_as_a_whole();
  QuantizeCase c = draw_case(q, q);
  const std::vector<Tensor> first = run_kernel(c);
  const auto state = first[6].view().span<float>();
  c.state.assign(state.begin(), state.end());
  RC_ASSERT(run_kernel(c) == first);
}

// The values of a quantised matrix, padding included.
Reals dequantized(const Quantization& q, const QuantizedTensors& from) {
  const Tensor to(product_format(q.format), from.codes.view.rows, from.codes.view.columns);
  std::memset(to.view().data, 0xff, to.view().bytes().size());
  dequantize(q, from.view(), to.view());
  return to.values();
}

Quantization draw_any() {
  return *rc::gen::element(draw_scaled_as_a_whole(), draw_scaled_by_powers_of_two(), draw_nvfp4());
}

RC_GTEST_PROP(Dequantize, EqualsTheReferenceForAnyBytes, ()) {
  const Quantization q = draw_any();
  const int64_t rows = size_near_borders(140), columns = size_near_borders(300);
  const QuantizedTensors from(q, rows, columns);
  std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
  reference::Quantized bytes;
  const auto fill = [&](const Tensor& tensor, std::vector<uint8_t>& copy) {
    for (std::byte& b : tensor.view().bytes()) b = static_cast<std::byte>(random());
    const auto* first = reinterpret_cast<const uint8_t*>(tensor.view().data);
    copy.assign(first, first + tensor.view().bytes().size());
  };
  fill(from.codes.bytes, bytes.codes);
  fill(from.scales.bytes, bytes.scales);
  const int64_t padded = from.codes.view.columns;
  const Format format = product_format(q.format);
  const std::vector<float> values = reference::dequantize(q, bytes, padded);
  const Tensor expected(format, rows, padded, {values.begin(), values.end()});
  on_every_target(
      [&] {
        std::vector<Tensor> out{{format, rows, padded}};
        std::memset(out[0].view().data, 0xff, out[0].view().bytes().size());
        dequantize(q, from.view(), out[0].view());
        return out;
      },
      [&](const std::vector<Tensor>& out) {
        const auto* wanted = reinterpret_cast<const uint8_t*>(expected.view().data);
        const std::vector<uint8_t> copy(wanted, wanted + expected.view().bytes().size());
        expect_bytes("values", q, out[0], copy);
      });
}

RC_GTEST_PROP(Quantize, KeepsBlocksOfZerosZero, ()) {
  const Quantization q = draw_any();
  QuantizeCase c = draw_case(q, q);
  const bool transposed = Draw::flag();
  c.kind.has_rows = !transposed;
  c.kind.has_columns = transposed;
  // Zeros in as many rows, or columns, of x as the tallest tile has.
  const int64_t first = Draw::size(0, (transposed ? c.columns : c.rows) - 1) / 128 * 128;
  for (int64_t i = 0; i < std::ssize(c.x); ++i) {
    const int64_t at = transposed ? i % c.columns : i / c.columns;
    if (at >= first && at < first + 128) c.x[i] = bf16(i % 3 == 0 ? -0.0f : 0.0f);
  }
  const int64_t rows = transposed ? c.columns : c.rows, columns = transposed ? c.rows : c.columns;
  const std::vector<Tensor> out = run_kernel(c);
  const QuantizedTensors from(q, rows, columns);
  const size_t offset = transposed ? 3 : 0;
  std::memcpy(from.codes.view.data, out[offset].view().data,
              from.codes.bytes.view().bytes().size());
  std::memcpy(from.scales.view.data, out[offset + 1].view().data,
              from.scales.bytes.view().bytes().size());
  const Reals values = dequantized(q, from);
  const int64_t padded = from.codes.view.columns;
  for (int64_t r = first; r < std::min(rows, first + 128); ++r) {
    for (int64_t column = 0; column < padded; ++column) {
      if (values[r * padded + column] != 0) {
        RC_FAIL(fmt::format("({}, {}) is {} ({})", r, column, values[r * padded + column],
                            describe(q)));
      }
    }
  }
}

// Formats with a NaN show it in their products.
RC_GTEST_PROP(Quantize, ShowsNaN, ()) {
  const Quantization q = Draw::flag() ? draw_scaled_as_a_whole() : draw_scaled_by_powers_of_two();
  QuantizeCase c = draw_case(q, q);
  c.kind.has_rows = true;
  c.control.observe = 1;
  const int64_t at = Draw::size(0, std::ssize(c.x) - 1);
  c.x[at].bits = 0x7fc0;
  const std::vector<Tensor> out = run_kernel(c);
  const QuantizedTensors from(q, c.rows, c.columns);
  std::memcpy(from.codes.view.data, out[0].view().data, from.codes.bytes.view().bytes().size());
  std::memcpy(from.scales.view.data, out[1].view().data, from.scales.bytes.view().bytes().size());
  const Reals values = dequantized(q, from);
  RC_ASSERT(std::isnan(values[at / c.columns * from.codes.view.columns + at % c.columns]));
  RC_ASSERT(out[7].values()[0] >= 1);
}

RC_GTEST_PROP(UpdateScaling, RollsTheHistoryAndChoosesTheScale, ()) {
  Draw draw;
  std::vector<float> state(static_cast<size_t>(Draw::size(2, 6)));
  for (float& value : state) {
    value = *rc::gen::element(0.0f, 1.0f, 5.0f, 1e-38f, std::numeric_limits<float>::infinity());
  }
  const auto algorithm = *rc::gen::element(AmaxAlgorithm::max, AmaxAlgorithm::most_recent);
  const int margin = static_cast<int>(Draw::size(0, 3));
  std::vector<float> expected = state;
  DelayedScaling{std::span(expected).first(expected.size() - 1), expected.back()}.update(
      algorithm, 448, margin);
  const std::vector<float> before = state;
  update_scaling(algorithm, 448, margin, state);
  RC_ASSERT(state == expected);
  if (before[0] == 0) RC_ASSERT(state == before);  // nothing was observed
}

TEST(Quantize, RefusesAFormatThatDoesNotGoWithTheScaling) {
  QuantizeCase c;
  c.x.resize(1);
  c.kind.rows.format = Format::e2m1;
  EXPECT_THROW(run_kernel(c), Error);
  c.kind.rows.format = Format::e4m3;
  c.kind.rows.hadamard = true;
  EXPECT_THROW(run_kernel(c), Error);
}

}  // namespace
}  // namespace plimsoll::cpu
