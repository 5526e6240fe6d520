/**
 * Encodes a policy as the text of a C++17 header that needs only `<cmath>` and `<cstddef>`: for microcontrollers,
 * simulators and other programs without a runtime for networks. The weights are constants, so they can stay in flash.
 * `policyFiles.ts` calls it, and `rl/train/stepFolder.ts` writes the text to a file.
 *
 * @example
 * ```ts
 * const example = DenseActor.exampleOf(denseActor, Float32Array.of(1, 0, 0))
 * actorToHeader(denseActor, { name: "pendulum", commit: "f972979", example })
 * ```
 * ```cpp
 * #include "pendulum.h"
 * float action[policy_pendulum::outputs];
 * policy_pendulum::evaluate(observation, action);
 * policy_pendulum::test(); // the largest difference from the example in the file: nearly 0
 * ```
 */
import {
  type ActorActivation,
  type ActionBounds,
  checkExport,
  type DenseActor,
  type DenseLayer,
  type Example,
  type InputNormalisation,
  outputSize,
  precisionOf,
  stretchOf,
} from "./DenseActor.ts"
import { utf8 } from "../../base/config/utf8.ts"

export interface HeaderOptions {
  /** The name of the policy. `namespaceOf` makes the C++ namespace from it. */
  readonly name: string
  /** The commit of the code that trained the policy. */
  readonly commit: string
  /** Inputs with their outputs, which the C++ function `test` compares with its own. */
  readonly example: Example
}

/** Returns `policy_NAME`. One `_` replaces each group of characters that C++ forbids in names; it also forbids `__`. */
export const namespaceOf = (name: string): string => `policy_${name}`.replace(/[^A-Za-z0-9]+/g, "_").replace(/_$/, "")

/** Returns the text of the header. Throws a `PolicyError` if sizes do not match or a number is not finite. */
export const actorToHeader = (actor: DenseActor, { name, commit, example }: HeaderOptions): string => {
  const rows = checkExport(actor, example)
  const space = namespaceOf(name)
  const guard = `EFFECT_RL_${space}_H`
  const used = new Set(actor.layers.map(({ activation }) => activation))
  const parts = [
    `// A policy, written by effect-rl: ${space}::evaluate acts, ${space}::test checks it against an example.`,
    `#ifndef ${guard}\n#define ${guard}`,
    "#include <cmath>\n#include <cstddef>",
    `namespace ${space} {`,
    `inline constexpr char name[] = ${quoted(name)};\ninline constexpr char commit[] = ${quoted(commit)};`,
    `inline constexpr std::size_t inputs = ${actor.inputs};\ninline constexpr std::size_t outputs = ${outputSize(actor)};`,
    ...(actor.normalisation === undefined ? [] : [normalisationCode(actor.normalisation)]),
    ...actor.layers.map((layer, index) => layerCode(layer, index)),
    ...(actor.bounds === undefined ? [] : [boundsCode(actor.bounds)]),
    exampleCode(example, rows),
    ...[...used].map((activation) => `inline float ${activation}(float x) { ${activationCode[activation]} }`),
    denseCode,
    evaluateCode(actor),
    testCode,
    `}  // namespace ${space}`,
    "#endif",
  ]
  return `${parts.join("\n\n")}\n`
}

/**
 * Returns a text as a C++ string literal. Bytes with a special meaning become a backslash and three octal digits. `?`
 * is one of these bytes, because C++ replaces `??` and some characters after it (a trigraph) by another character.
 */
const quoted = (text: string): string => {
  const isPlain = (byte: number): boolean => byte >= 0x20 && byte < 0x7f && !'"\\?'.includes(String.fromCharCode(byte))
  const bytes = [...utf8.encode(text)]
  return `"${bytes.map((byte) => (isPlain(byte) ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`)).join("")}"`
}

/** Returns a number as a C++ literal with nine digits, which are enough to distinguish all float32 numbers. */
const literal = (value: number): string => {
  const digits = Object.is(value, -0) ? "-0" : String(Number(value.toPrecision(9)))
  return /[.e]/.test(digits) ? `${digits}f` : `${digits}.0f`
}

const numbersOfLine = 8

const array = (name: string, values: Float32Array): string => {
  const lines = Array.from({ length: Math.ceil(values.length / numbersOfLine) }, (_, line) => {
    const lineValues = values.subarray(line * numbersOfLine, (line + 1) * numbersOfLine)
    return `    ${Array.from(lineValues, literal).join(", ")},`
  })
  return `inline constexpr float ${name}[${values.length}] = {\n${lines.join("\n")}\n};`
}

const namespace = (name: string, comment: string, lines: ReadonlyArray<string>): string =>
  [`namespace ${name} {${comment === "" ? "" : `  // ${comment}`}`, ...lines, `}  // namespace ${name}`].join("\n")

const normalisationCode = (normalisation: InputNormalisation): string =>
  namespace("normalisation", "", [
    array("mean", normalisation.mean),
    array("precision", precisionOf(normalisation)),
    ...(normalisation.clip === undefined
      ? []
      : [`inline constexpr float limit = ${literal(Math.fround(normalisation.clip))};`]),
  ])

const layerCode = ({ weights, biases }: DenseLayer, index: number): string =>
  namespace(`layer_${index}`, `${biases.length} outputs from ${weights.length / biases.length} inputs`, [
    array("weights", weights),
    array("biases", biases),
  ])

const boundsCode = (bounds: ActionBounds): string => {
  const { low, high, scaled } = bounds
  const arrays = Object.entries(scaled ? stretchOf(bounds) : { low, high }).map(([name, values]) => array(name, values))
  return namespace("bounds", "of the actions that the env takes", arrays)
}

const exampleCode = ({ input, output }: Example, rows: number): string =>
  namespace("example", "", [
    `inline constexpr std::size_t rows = ${rows};`,
    array("input", input),
    array("output", output),
  ])

const activationCode: Readonly<Record<ActorActivation, string>> = {
  identity: "return x;",
  relu: "return x > 0.0f ? x : 0.0f;",
  tanh: "return std::tanh(x);",
  sigmoid: "return 1.0f / (1.0f + std::exp(-x));",
  silu: "return x / (1.0f + std::exp(-x));",
  softplus: "return (x > 0.0f ? x : 0.0f) + std::log1p(std::exp(-std::fabs(x)));",
  gelu: "return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));",
}

const denseCode = `template <float (*Activation)(float), std::size_t Weights, std::size_t Outputs>
void dense(const float (&weight)[Weights], const float (&bias)[Outputs], const float* from, float* to) {
    constexpr std::size_t from_size = Weights / Outputs;
    for (std::size_t row = 0; row < Outputs; row++) {
        float sum = bias[row];
        for (std::size_t column = 0; column < from_size; column++) {
            sum += weight[row * from_size + column] * from[column];
        }
        to[row] = Activation(sum);
    }
}`

const normaliseLines = ({ clip }: InputNormalisation): ReadonlyArray<string> => [
  "    float value_in[inputs];",
  "    for (std::size_t index = 0; index < inputs; index++) {",
  "        const float value = (input[index] - normalisation::mean[index]) * normalisation::precision[index];",
  ...(clip === undefined
    ? ["        value_in[index] = value;"]
    : [
        "        const float below = value > normalisation::limit ? normalisation::limit : value;",
        "        value_in[index] = below < -normalisation::limit ? -normalisation::limit : below;",
      ]),
  "    }",
]

const boundLines = ({ scaled }: ActionBounds): ReadonlyArray<string> => [
  "    for (std::size_t index = 0; index < outputs; index++) {",
  ...(scaled
    ? ["        output[index] = output[index] * bounds::half[index] + bounds::middle[index];"]
    : [
        "        if (output[index] < bounds::low[index]) output[index] = bounds::low[index];",
        "        if (output[index] > bounds::high[index]) output[index] = bounds::high[index];",
      ]),
  "    }",
]

/** Returns the C++ function `evaluate`, which computes the outputs for one input. Each layer has its own buffer. */
const evaluateCode = ({ normalisation, layers, head, bounds }: DenseActor): string => {
  const start = normalisation === undefined ? "input" : "value_in"
  const squashes = head === "sample_and_squash"
  const lines = layers.flatMap(({ biases, activation }, index) => {
    const from = index === 0 ? start : `value_${index - 1}`
    const isOutput = index === layers.length - 1 && !squashes
    const to = isOutput ? "output" : `value_${index}`
    const call = `    dense<${activation}>(layer_${index}::weights, layer_${index}::biases, ${from}, ${to});`
    return isOutput ? [call] : [`    float ${to}[${biases.length}];`, call]
  })
  const squash = `    for (std::size_t index = 0; index < outputs; index++) output[index] = std::tanh(value_${layers.length - 1}[index]);`
  return [
    `// ${squashes ? "The best action: tanh of the mean, which is the first half of the last layer" : "The outputs of the last layer"}${bounds === undefined ? "" : bounds.scaled ? ", scaled to the bounds" : ", clipped at the bounds"}.`,
    "inline void evaluate(const float* input, float* output) {",
    ...(normalisation === undefined ? [] : normaliseLines(normalisation)),
    ...lines,
    ...(squashes ? [squash] : []),
    ...(bounds === undefined ? [] : boundLines(bounds)),
    "}",
  ].join("\n")
}

const testCode = `// Returns the largest absolute difference from the outputs of the example; NaN if any output is NaN.
inline float test() {
    float largest = 0.0f;
    for (std::size_t row = 0; row < example::rows; row++) {
        float output[outputs];
        evaluate(example::input + row * inputs, output);
        for (std::size_t index = 0; index < outputs; index++) {
            const float difference = std::fabs(output[index] - example::output[row * outputs + index]);
            if (std::isnan(difference)) return difference;
            if (difference > largest) largest = difference;
        }
    }
    return largest;
}`
