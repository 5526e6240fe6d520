import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { actorToHeader, namespaceOf } from "../../../src/rl/export/cheader.ts"
import { type DenseActor, evaluate } from "../../../src/rl/export/DenseActor.ts"
import { PolicyError } from "../../../src/rl/policy/PolicyError.ts"
import { activations, drawn, drawnLayer, rowsFor, squashed, uneven } from "./actors.ts"
import { inFolder, isInstalled, output } from "./programs.ts"

const headerOf = (name: string, actor: DenseActor): string =>
  actorToHeader(actor, { name, commit: "f972979", example: rowsFor(actor, 13) })

const policies: Readonly<Record<string, DenseActor>> = {
  squashed,
  uneven,
  stretched: { ...squashed, bounds: { low: Float32Array.of(-2, 0.1), high: Float32Array.of(2, 0.7), scaled: true } },
  "cut off": {
    ...uneven,
    bounds: { low: Float32Array.of(-0.3, -1), high: Float32Array.of(3.4e38, 0.2), scaled: false },
  },
  limited: {
    ...squashed,
    normalisation: { mean: drawn(3), deviation: Float32Array.of(0.5, 0.25, 2), clip: 1.5 },
  },
  ...Object.fromEntries(
    activations.map((activation) => [
      activation,
      {
        inputs: 6,
        layers: [drawnLayer(6, 32, activation), drawnLayer(32, 32, activation), drawnLayer(32, 3, activation)],
      },
    ]),
  ),
}

/** Numbers that are lost by whoever writes too few digits: below 1024, eight cannot tell one from the next. */
const extremes = Float32Array.of(
  0,
  -0,
  1,
  -123456789,
  3.4028234663852886e38,
  1.1754943508222875e-38,
  1e-45,
  0.1,
  1 / 3,
  1e20,
  ...[1, 2, 3, 4].map((steps) => 1024 * (1 - steps * 2 ** -24)),
)
/** A policy that says its biases, whatever it sees. */
const constant: DenseActor = {
  inputs: 1,
  layers: [{ weights: new Float32Array(extremes.length), biases: extremes, activation: "identity" }],
}

const strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]

/** Compiles headers with a program that uses them all, runs it, and gives what it prints, line by line. */
const compiled = (headers: ReadonlyArray<string>, main: string): ReadonlyArray<string> =>
  inFolder((folder) => {
    for (const [index, header] of headers.entries()) writeFileSync(join(folder, `policy_${index}.h`), header)
    // Twice: whoever includes one often includes it again.
    const includes = [...headers, ...headers].map((_, index) => `#include "policy_${index % headers.length}.h"\n`)
    const source = join(folder, "main.cpp")
    writeFileSync(source, `#include <cstdio>\n${includes.join("")}int main() {\n${main}\n}\n`)
    const program = join(folder, "main")
    assert.strictEqual(output("g++", [...strict, "-O1", "-o", program, source]), "")
    return output(program, []).trimEnd().split("\n")
  })

const needsCompiler = (skip: (note: string) => void): void => {
  if (!isInstalled("g++")) skip("g++ is not installed")
}

describe("a policy as a C++ header", () => {
  it("compiles without a warning, passes its own test, and acts like the policy within 1e-5", ({ skip }) => {
    needsCompiler(skip)
    const tried = Object.entries(policies).map(([name, actor]) => ({ name, actor, ...rowsFor(actor, 50) }))
    const main = tried.map(({ name, actor, input }) => {
      const space = namespaceOf(name)
      return `{
        const float input[] = { ${Array.from(input, (value) => `${value.toExponential()}f`).join(", ")} };
        std::printf("%.9g", double(${space}::test()));
        for (std::size_t row = 0; row < 50; row++) {
          float output[${space}::outputs];
          ${space}::evaluate(input + row * ${space}::inputs, output);
          for (float value : output) std::printf(" %.9g", double(value));
        }
        std::printf("\\n");
        static_assert(${space}::inputs == ${actor.inputs});
      }`
    })
    const lines = compiled(
      tried.map(({ name, actor }) => headerOf(name, actor)),
      main.join("\n"),
    )
    assert.strictEqual(lines.length, tried.length)
    for (const [index, { name, output: expected }] of tried.entries()) {
      const [difference, ...found] = lines[index].split(" ").map(Number)
      assert.isAtMost(difference, 1e-5, name)
      assert.strictEqual(found.length, expected.length)
      for (let at = 0; at < found.length; at++) assert.closeTo(found[at], expected[at], 1e-5, name)
      assert.isAbove(new Set(found).size, 20, name)
    }
  })

  it("has every number to the last bit, and its name and commit to the last character", ({ skip }) => {
    needsCompiler(skip)
    const name = 'a "b" \\ ??/ ü\n%s 7'
    const header = actorToHeader(constant, {
      name,
      commit: "no-hash",
      example: { input: Float32Array.of(1), output: evaluate(constant, Float32Array.of(1)) },
    })
    const space = namespaceOf(name)
    assert.strictEqual(space, "policy_a_b_s_7")
    const main = `
      float output[${space}::outputs];
      const float input = 1.0f;
      ${space}::evaluate(&input, output);
      for (float value : output) std::printf("%a ", double(value));
      std::printf("\\n%.9g\\n%s\\n%s\\n", double(${space}::test()), ${space}::commit, ${space}::name);`
    const [values, difference, commit, ...rest] = compiled([header], main)
    // A weight of 0 times an input adds 0 to a bias, by which -0 becomes 0.
    const expected = Array.from(extremes, (value) => (value === 0 ? 0 : value))
    assert.deepStrictEqual(values.trim().split(" ").map(fromHex), expected)
    assert.strictEqual(difference, "0")
    assert.strictEqual(commit, "no-hash")
    assert.strictEqual(rest.join("\n"), name)
  })

  it("reports a wrong example, and one that is NaN", { tags: "slow" }, ({ skip }) => {
    needsCompiler(skip)
    const { input, output: right } = rowsFor(uneven, 3)
    const wrong = right.map((value, index) => (index === 3 ? value + 0.25 : value))
    const header = actorToHeader(uneven, { name: "wrong", commit: "x", example: { input, output: wrong } })
    const broken = header
      .replace(/(namespace example \{[\s\S]*input\[12\] = \{\n {4})\S+,/, "$1NAN,")
      .replaceAll("wrong", "broken")
    assert.notStrictEqual(broken, header)
    const print = (space: string): string => `std::printf("%.9g\\n", double(${space}::test()));`
    const [difference, none] = compiled([header, broken], `${print("policy_wrong")}\n${print("policy_broken")}`)
    assert.closeTo(Number(difference), 0.25, 1e-5)
    assert.match(none, /nan/)
  })

  it("needs only two standard headers", () => {
    for (const [name, actor] of Object.entries(policies)) {
      const header = headerOf(name, actor)
      assert.deepStrictEqual(header.match(/#include.*/g), ["#include <cmath>", "#include <cstddef>"])
    }
  })

  it("is refused for an invalid policy", () => {
    const infinite = { ...constant, layers: [{ ...constant.layers[0], biases: extremes.map(() => Infinity) }] }
    assert.throws(
      () => headerOf("x", infinite),
      PolicyError,
      "layer 0: biases: expected finite numbers, found Infinity",
    )
  })
})

/** A number as C's %a prints it. */
const fromHex = (text: string): number => {
  const [, sign, whole, fraction = "", exponent] =
    /^(-?)0x([01])(?:\.([0-9a-f]+))?p([+-]\d+)$/.exec(text) ?? assert.fail(text)
  const size = Number.parseInt(whole + fraction, 16) * 2 ** (Number(exponent) - 4 * fraction.length)
  return sign === "-" ? -size : size
}
