/**
 * Writes any exported policy as a header of C99, which C++ compilers accept, too: for microcontrollers, simulators and other
 * programs without a runtime for networks. `effect export RUN --to h` and `rl/train/stepFolder.ts` write the text to a file.
 *
 * @example
 * ```ts
 * const header = yield* CHeader.policyHeader(onnxBytes, { path: "policy.onnx", commit: "f972979" })
 * ```
 * ```c
 * #include "policy.h"
 * float observation[EFFECT_POLICY_OBSERVATION_SIZE] = {0.01f, 0.0f, 0.02f, 0.0f};
 * int32_t action[EFFECT_POLICY_ACTION_SIZE];
 * effect_policy_act(observation, action);
 * ```
 */
import { Effect, type Scope } from "effect"
import { display } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { stream } from "../../base/rng/Rng.ts"
import * as Wasm from "../../tensor/backend/wasm.ts"
import { type ProgramInC, programInC } from "../../tensor/c/program.ts"
import { arrayInC, typesInC } from "../../tensor/c/literals.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { sizeOf as elements, type Tensor, topologicalOrder } from "../../tensor/graph/Tensor.ts"
import * as Layout from "../../run/Layout.ts"
import { sampleInto, sizeOf } from "../env/Space.ts"
import type { PolicyAbout } from "../policy/about.ts"
import { decodePolicy } from "../policy/decodePolicy.ts"
import { PolicyError } from "../policy/PolicyError.ts"
import { headerComment, quoted } from "./headerTexts.ts"

export interface HeaderOptions {
  /** The name of the file with the policy, for error messages. @default "policy.onnx" */
  readonly path?: string
  /** The beginning of all names, a C identifier in small letters, so that a program can use several policies. @default "effect_policy" */
  readonly prefix?: string | undefined
  /** The commit of the code that trained the policy. @default "" */
  readonly commit?: string | undefined
  /** The first observation of the example, as the env gives it. By default it is drawn, as the others are. */
  readonly example?: ArrayLike<number>
}

/** How many observations the example in the file has. */
const exampleRows = 3

/**
 * Returns the text of the header for the bytes of an ONNX file that this library exported. The actions have the same bits as
 * those of `Policy.load` with the backend `wasm`. Fails if the file has no policy, if a weight is not a number, or if the policy
 * is too large.
 */
export const policyHeader = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  { path = Layout.inCheckpoint.policy, prefix = "effect_policy", commit = "", example: first }: HeaderOptions = {},
): Effect.fn.Return<string, PolicyError> {
  if (!isPrefix(prefix)) {
    const expected = "expected up to 40 small letters, digits and single underscores that begin with a letter"
    return yield* new PolicyError({ message: `prefix: ${expected}, found ${JSON.stringify(prefix)}` })
  }
  const { about, programs } = yield* decodePolicy(bytes, path)
  const spec = programs.main
  const misfit = misfitOf(spec)
  if (misfit !== undefined) return yield* new PolicyError({ message: `${path}: ${misfit}` })
  const program = yield* Effect.try({
    try: () => programInC(spec, optionsFor(`${prefix}_`)),
    catch: (error) => new PolicyError({ message: `${path}: ${messageOf(error)}` }),
  })
  const example = yield* Effect.scoped(exampleOf(spec, about, first)).pipe(
    Effect.catchDefect(Effect.fail),
    Effect.mapError((error) => new PolicyError({ message: `${path}: its program cannot run: ${messageOf(error)}` })),
  )
  return headerText({ about, commit, example, prefix, program, spec })
})

const isPrefix = (prefix: string): boolean => prefix.length <= 40 && /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(prefix)

const optionsFor = (prefix: string) => ({
  prefix,
  inputs: { observations: "observation", memory: "memory" },
  outputs: { actions: "action", nextMemory: "next_memory" },
  extra: ({ actions }: ProgramSpec["outputs"]) => scoresFor(actions),
})

/** Says why a program, which may come from anybody, does not fit the parameters of the functions in C; undefined if it fits. */
const misfitOf = ({ inputs, outputs }: ProgramSpec): string | undefined => {
  const other = Object.keys(inputs).find((name) => name !== "observations" && name !== "memory")
  if (other !== undefined)
    return `expected a program that reads observations and a memory, found the input ${display(other)}`
  const { nextMemory } = outputs
  const wrong = Object.entries({ ...inputs, nextMemory }).find(
    ([, tensor]) => tensor !== undefined && tensor.dtype !== "f32",
  )
  return wrong && `${wrong[0]}: expected numbers of the type f32, found ${wrong[1]?.dtype}`
}

/** Finds the scores of the choices among which a policy takes the best: logits, or action values. */
const scoresFor = (actions: Tensor): ReadonlyArray<Tensor> => {
  const found = new Set<Tensor>()
  const pending = [actions]
  const seen = new Set<Tensor>()
  for (let tensor = pending.pop(); tensor !== undefined; tensor = pending.pop()) {
    if (seen.has(tensor)) continue
    seen.add(tensor)
    if (tensor.op.kind === "argMax") found.add(tensor.inputs[0])
    else pending.push(...tensor.inputs)
  }
  return topologicalOrder(found).filter((tensor) => found.has(tensor))
}

/** Observations one after another, the actions that the policy takes, and the scores of its choices, if it has any. */
interface Example {
  readonly observations: Float32Array
  readonly actions: Float32Array | Int32Array
  readonly scores: Float32Array
}

/** Draws observations, which are steps of one episode, and runs the policy on them. */
const exampleOf = Effect.fnUntraced(function* (
  spec: ProgramSpec,
  { actionSpace, hasActionMask, observationSpace }: PolicyAbout,
  first: ArrayLike<number> = [],
): Effect.fn.Return<Example, unknown, Scope.Scope> {
  const scores = scoresFor(spec.outputs.actions)
  const named = Object.fromEntries(scores.map((tensor, i) => [`scores.${i}`, tensor]))
  const program = yield* Wasm.make().compile({ ...spec, outputs: { ...spec.outputs, ...named } })
  const { memory, observations } = program.feeds
  const { actions, nextMemory } = program.results
  const random = stream(1, "policy header")
  const size = sizeOf(observationSpace)
  const all = new Float32Array(exampleRows * observations.length)
  const taken = new (actions instanceof Float32Array ? Float32Array : Int32Array)(exampleRows * sizeOf(actionSpace))
  const row = new Float32Array(observations.length)
  const scored: Array<number> = []
  for (let i = 0; i < exampleRows; i++) {
    sampleInto(observationSpace, random, row)
    // Bounds such as ±3.4e38 stand for none; an example of usual size says more about the policy.
    row.forEach((value, at) => void (Math.abs(value) > 1e6 && (row[at] = random.normal())))
    if (i === 0 && first.length === size) row.set(first)
    if (hasActionMask) row.fill(1, size)
    all.set(row, i * row.length)
    observations.set(row)
    yield* program.run
    taken.set(actions, i * actions.length)
    for (const name of Object.keys(named)) scored.push(...program.results[name])
    if (nextMemory !== undefined) memory?.set(nextMemory)
  }
  return { observations: all, actions: taken, scores: Float32Array.from(scored) }
})

interface HeaderParts {
  readonly about: PolicyAbout
  readonly commit: string
  readonly example: Example
  readonly prefix: string
  readonly program: ProgramInC
  readonly spec: ProgramSpec
}

const headerText = (parts: HeaderParts): string => {
  const { about, commit, example, prefix, program, spec } = parts
  const large = prefix.toUpperCase()
  const { actions, nextMemory } = spec.outputs
  const observationSize = elements(spec.inputs.observations.shape)
  const stateSize = nextMemory === undefined ? 0 : elements(nextMemory.shape)
  const define = (name: string, value: number | string): string => `#define ${large}_${name} ${value}`
  const name = `${about.algorithm} on ${about.env}`
  const memoryBytes = program.bytes.memory + 4 * stateSize
  const sizes = [
    define("NAME", quoted(name)),
    define("COMMIT", quoted(commit)),
    define("STEP", `${about.step}`),
    define("OBSERVATION_SIZE", observationSize),
    ...(about.hasActionMask ? [define("MASK_SIZE", observationSize - sizeOf(about.observationSpace))] : []),
    define("ACTION_SIZE", elements(actions.shape)),
    ...(program.extraSize === 0 ? [] : [define("SCORES_SIZE", program.extraSize)]),
    ...(stateSize === 0 ? [] : [define("STATE_SIZE", stateSize)]),
    define("WEIGHTS_BYTES", program.bytes.constants),
    define("MEMORY_BYTES", memoryBytes),
  ]
  const actionType = typesInC[actions.dtype]
  const hasScores = program.extraSize > 0
  return `${[
    headerComment({
      about,
      prefix,
      commit,
      actionType,
      observationSize,
      stateSize,
      memoryBytes,
      hasScores,
      bytes: program.bytes,
    }),
    `#ifndef ${large}_H\n#define ${large}_H`,
    `#include <stdint.h>\n#include <string.h>${program.hasInfinity ? "\n#include <math.h>" : ""}`,
    noContraction(large),
    sizes.join("\n"),
    ...program.constants,
    ...program.functions,
    program.compute,
    actCode(prefix, large, actionType, { hasScores, stateSize }),
    testCode(prefix, large, actionType, { example, scoresSize: program.extraSize, stateSize }),
    contractionAgain,
    `#endif /* ${large}_H */`,
  ].join("\n\n")}\n`
}

/** Keeps compilers from joining a product and a sum to one operation, which rounds only once. */
const noContraction = (large: string): string => `#if defined(__FAST_MATH__)
#error "${large}: compile without -ffast-math, which changes the results"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif`

const contractionAgain = `#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif`

const actCode = (
  prefix: string,
  large: string,
  actionType: string,
  { hasScores, stateSize }: { readonly hasScores: boolean; readonly stateSize: number },
): string => {
  const remembers = stateSize > 0
  const stateParameter = remembers ? `${prefix}_state *state, ` : ""
  const stateArgument = remembers ? "state, " : ""
  const parameters = `const float *observation, ${stateParameter}${actionType} *action`
  const inner = `observation, ${remembers ? "state->memory, " : ""}action${remembers ? ", next" : ""}`
  const body = (extra: string): string =>
    remembers
      ? `{
    static float next[${large}_STATE_SIZE];
    ${prefix}_compute(${inner}${extra});
    memcpy(state->memory, next, sizeof next);
}`
      : `{
    ${prefix}_compute(${inner}${extra});
}`
  const parts = [
    ...(remembers
      ? [
          `/* What the policy remembers within an episode. */
typedef struct {
    float memory[${large}_STATE_SIZE];
} ${prefix}_state;

/* Empties the memory: call it when an episode begins. */
static inline void ${prefix}_reset(${prefix}_state *state) {
    for (int32_t i = 0; i < ${large}_STATE_SIZE; i++) state->memory[i] = 0.0f;
}`,
        ]
      : []),
    ...(hasScores
      ? [
          `/* Acts, and writes the scores of the choices, of which it takes the highest; scores may be a null pointer. */
static inline void ${prefix}_act_with_scores(${parameters}, float *scores) ${body(", scores")}`,
          `/* Writes the best action for an observation. */
static inline void ${prefix}_act(${parameters}) {
    ${prefix}_act_with_scores(observation, ${stateArgument}action, 0);
}`,
        ]
      : [
          `/* Writes the best action for an observation. */
static inline void ${prefix}_act(${parameters}) ${body("")}`,
        ]),
  ]
  return parts.join("\n\n")
}

const testCode = (
  prefix: string,
  large: string,
  actionType: string,
  {
    example,
    scoresSize,
    stateSize,
  }: { readonly example: Example; readonly scoresSize: number; readonly stateSize: number },
): string => {
  const dtype = example.actions instanceof Float32Array ? "f32" : "i32"
  const remembers = stateSize > 0
  const hasScores = scoresSize > 0 && example.scores.length === scoresSize * exampleRows
  const stateArgument = remembers ? "&state, " : ""
  const observation = `${prefix}_example_observations + row * ${large}_OBSERVATION_SIZE`
  const compared = (array: string, size: string): string =>
    `        for (int32_t i = 0; i < ${large}_${size}; i++) {
            const float difference = (float)${array}[i] - (float)${prefix}_example_${array}[row * ${large}_${size} + i];
            if (difference != difference) return difference;
            if (difference > largest) largest = difference;
            if (-difference > largest) largest = -difference;
        }`
  return `${arrayInC(`${prefix}_example_observations`, "f32", example.observations)}
${arrayInC(`${prefix}_example_action`, dtype, example.actions)}${hasScores ? `\n${arrayInC(`${prefix}_example_scores`, "f32", example.scores)}` : ""}

/* Acts on the observations of the example; returns the largest difference from what effect-rl computed: 0 if all is well. */
static inline float ${prefix}_test(void) {
    static ${actionType} action[${large}_ACTION_SIZE];${hasScores ? `\n    static float scores[${large}_SCORES_SIZE];` : ""}${remembers ? `\n    static ${prefix}_state state;` : ""}
    float largest = 0.0f;${remembers ? `\n    ${prefix}_reset(&state);` : ""}
    for (int32_t row = 0; row < ${exampleRows}; row++) {
        ${prefix}_act${hasScores ? "_with_scores" : ""}(${observation}, ${stateArgument}action${hasScores ? ", scores" : ""});
${[compared("action", "ACTION_SIZE"), ...(hasScores ? [compared("scores", "SCORES_SIZE")] : [])].join("\n")}
    }
    return largest;
}`
}
