// What a program refuses: operands outside their tensors, aliases a rule does not allow, races.
#include "plimsoll/step/program.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"

namespace plimsoll::step {
namespace {

TensorId add(Program& program, const char* name, Shape shape, Format format = Format::f32,
             bool persistent = true) {
  return add_tensor(program, {.name = name, .type = {shape, format}, .persistent = persistent});
}

TEST(Operands, NameAPieceOfAFlatUnit) {
  Program program;
  const TensorId unit = add(program, "unit", {1, 1024});
  const TensorId copy = add(program, "copy", {3, 7}, Format::bf16);
  const Operand weight = {unit, 128, TensorType{{3, 7}, Format::f32}};
  append(program, {.kind = Cast{}, .inputs = {weight}, .outputs = {{copy}}});
  validate(program);
  EXPECT_EQ(bytes_read(program, program.ops[0]), Bytes{4 * 3 * 7});
  EXPECT_NE(listing(program).find("unit[128+] (3, 7) f32"), std::string::npos);
  const Operand second = rows(program, weight, 1, 2);
  EXPECT_EQ(second.offset, 128 + 7);
  EXPECT_EQ(type_of(program, second).shape, (Shape{2, 7}));
  EXPECT_THROW(rows(program, weight, 2, 2), Error);
  program.ops[0].inputs[0].offset = 1024 - 20;
  EXPECT_THROW(validate(program), Error);
}

TEST(Operands, BeginAtAByte) {
  Program program;
  const TensorId codes = add(program, "codes", {1, 64}, Format::e2m1);
  program.ops.push_back({.kind = RopeTable{.head_dim = 2, .sequence = 1},
                         .outputs = {{codes, 3, TensorType{{1, 2}, Format::e2m1}}}});
  EXPECT_THROW(validate(program), Error);
}

TEST(Outputs, AliasNoInputThatTheirRuleDoesNotName) {
  Program program;
  const TensorId x = add(program, "x", {8, 16});
  const TensorId weight = add(program, "weight", {16, 16});
  const TensorId y = add(program, "y", {8, 16});
  const auto product = [&](const Operand& from, const Operand& to) {
    return Op{.kind = MatMul{.product = Product::forward, .output = Format::f32},
              .inputs = {from, {weight}},
              .outputs = {to}};
  };
  append(program, product({x}, {y}));
  EXPECT_THROW(append(program, product({x}, {x})), Error);
  // Rows of one tensor may be read and written by one op when they are apart, and only then.
  append(program, product(rows(program, {x}, 0, 4), rows(program, {x}, 4, 4)));
  EXPECT_THROW(append(program, product(rows(program, {x}, 0, 4), rows(program, {x}, 3, 4))), Error);
  // An output in place over one input must not lie over another as well.
  const TensorId gradient = add(program, "gradient", {1, 16});
  EXPECT_THROW(
      append(program,
             {.kind = SquaredNorm{}, .inputs = {{gradient}, {gradient}}, .outputs = {{gradient}}}),
      Error);
}

TEST(Streams, ThatRaceAreRefused) {
  for (const bool waits : {false, true}) {
    Program program;
    const TensorId a = add(program, "a", {8, 1}), b = add(program, "b", {8, 1}, Format::bf16);
    const TensorId c = add(program, "c", {8, 1}, Format::bf16);
    append(program, {.kind = Cast{}, .inputs = {{a}}, .outputs = {{b}}});
    append(program, {.kind = Cast{}, .inputs = {{a}}, .outputs = {{c}}, .stream = Stream::copy});
    validate(program);  // two readers
    append(program, {.kind = Cast{}, .inputs = {{a}}, .outputs = {{b}}, .stream = Stream::copy});
    if (waits) program.ops.back().after = {0};
    if (waits) {
      validate(program);
    } else {
      EXPECT_THROW(validate(program), Error);
    }
  }
}

}  // namespace
}  // namespace plimsoll::step
