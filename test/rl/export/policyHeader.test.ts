import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { A2c, CartPole, type Env, Graph, Pendulum, Ppo, Sac } from "../../../src/index.ts"
import { policyHeader } from "../../../src/rl/export/policyHeader.ts"
import { aboutText } from "../../../src/rl/policy/about.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { toOnnx } from "../../../src/tensor/graph/onnx/export.ts"
import { courier } from "../env/courier.ts"
import { exportedPolicy } from "./headers.ts"

const hidden = [8]
const headerFor = (...args: Parameters<typeof exportedPolicy>) =>
  Effect.flatMap(exportedPolicy(...args), (onnx) => policyHeader(onnx)).pipe(Effect.scoped, Effect.provide(Wasm.layer))

/** A policy of CartPole's spaces that adds up products of the observation with these weights. */
const made = (weights: Float32Array, shape: ReadonlyArray<number>): Uint8Array => {
  const observations = Graph.input("observations", [1, 4])
  const scores = Graph.matmul(observations, Graph.constant(weights, shape))
  const { actionSpace, id: env, observationSpace } = CartPole.env
  const about = { env, algorithm: "own", step: 1, observationSpace, actionSpace, hasActionMask: false }
  const actions = Graph.argMax(scores, 1)
  const spec = { name: "own", inputs: { observations }, state: {}, outputs: { actions } }
  return toOnnx(spec, { weightsAsInitializers: {}, embedded: { about: aboutText(about), programs: {} } })
}

/** A policy with another input, or with observations of another type, as no program of this library writes it. */
const strange = (input: string, dtype: "f32" | "i32"): Uint8Array => {
  const observations = Graph.input("observations", [1, 4], dtype)
  const other = Graph.input(input, [1, 4])
  const inputs = input === "observations" ? { observations } : { observations, [input]: other }
  const scores = Graph.add(Graph.cast(observations, "f32"), input === "observations" ? 0 : other)
  const { actionSpace, id: env, observationSpace } = CartPole.env
  const about = { env, algorithm: "own", step: 1, observationSpace, actionSpace, hasActionMask: false }
  const spec = { name: "own", inputs, state: {}, outputs: { actions: Graph.argMax(scores, 1) } }
  return toOnnx(spec, { weightsAsInitializers: {}, embedded: { about: aboutText(about), programs: {} } })
}

const refusal = (onnx: Uint8Array, options?: Parameters<typeof policyHeader>[1]) =>
  Effect.map(Effect.flip(policyHeader(onnx, { path: "runs/7/policy.onnx", ...options })), ({ message }) => message)

describe("the header of a policy", () => {
  it.effect("says what the policy is, its sizes, and how to use it", () =>
    Effect.gen(function* () {
      const header = yield* headerFor(CartPole.env, Ppo.make({ hidden }))
      for (const text of [
        "env        CartPole-v1",
        "#define EFFECT_POLICY_OBSERVATION_SIZE 4\n",
        "#define EFFECT_POLICY_ACTION_SIZE 1\n",
        "#define EFFECT_POLICY_SCORES_SIZE 2\n",
        "The action: a choice, from 0 to 1.",
        "static const float effect_policy_weights_0[32] = {",
        "static inline void effect_policy_act(const float *observation, int32_t *action) {",
      ])
        assert.include(header, text)
      assert.notMatch(header, /malloc|double|immintrin|__attribute__|math\.h/)
    }),
  )

  it.effect("of real numbers has floats, and no scores", () =>
    Effect.gen(function* () {
      const header = yield* headerFor(Pendulum.env, Sac.make({ hidden }), { normalised: true })
      assert.include(header, "static inline void effect_policy_act(const float *observation, float *action) {")
      assert.notInclude(header, "SCORES")
    }),
  )

  it.effect("with a memory keeps it in a struct, and with a mask says where it is", () =>
    Effect.gen(function* () {
      const recurrent = yield* headerFor(CartPole.env, A2c.make({ hidden, lstm: 4 }))
      assert.include(recurrent, "static inline void effect_policy_reset(effect_policy_state *state) {")
      assert.include(
        recurrent,
        "effect_policy_act(const float *observation, effect_policy_state *state, int32_t *action)",
      )
      const masked = yield* headerFor(courier(4), Ppo.make({ hidden }))
      assert.match(masked, /\d+ to \d+ {2}the mask: 1 for each choice that is allowed/)
      assert.match(masked, /#define EFFECT_POLICY_MASK_SIZE \d+/)
    }),
  )

  it.effect("is the same for the same policy, and has the names that `prefix` begins", () =>
    Effect.gen(function* () {
      const onnx = yield* exportedPolicy(CartPole.env, Ppo.make({ hidden }))
      const header = yield* policyHeader(onnx, { prefix: "left_arm" })
      assert.strictEqual(yield* policyHeader(onnx, { prefix: "left_arm" }), header)
      assert.include(header, "#define LEFT_ARM_OBSERVATION_SIZE 4\n")
      assert.notMatch(header, /effect_policy|EFFECT_POLICY/)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("has no code of whoever named the env and the algorithm", () =>
    Effect.gen(function* () {
      const evil = '*/ int evil; /* \\\n #include "evil.h" ??/\u2028 "; system("x");'
      const env: Env.Env = { ...CartPole.env, id: evil }
      const header = yield* headerFor(env, Ppo.make({ hidden }), { name: evil })
      const withoutTexts = header.replace(/\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\[0-7]{3})*"/g, "")
      for (const word of ["evil", "system", "??"]) assert.notInclude(withoutTexts, word)
      assert.strictEqual(withoutTexts.match(/#include/g)?.length, 2)
      assert.notInclude(header, "*/ int evil")
      assert.notInclude(header, "??")
    }),
  )
})

describe("a policy that cannot be a header", () => {
  it.effect("is refused, with the file and what was expected", () =>
    Effect.gen(function* () {
      const ones = new Float32Array(8).fill(1)
      for (const [onnx, message] of [
        [new Uint8Array(40), "runs/7/policy.onnx: "],
        [made(ones.with(3, NaN), [4, 2]), "runs/7/policy.onnx: c: weights [2, 4]: expected finite numbers, found NaN"],
        [made(ones.with(3, Infinity), [4, 2]), "expected finite numbers, found Infinity"],
        [
          made(new Float32Array(4 * 2 ** 20 + 4).fill(1).with(0, 2), [4, 2 ** 20 + 1]),
          "expected at most 4194304 numbers in weights, found ",
        ],
        [strange("evil;", "f32"), 'expected a program that reads observations and a memory, found the input "evil;"'],
        [strange("observations", "i32"), "observations: expected numbers of the type f32, found i32"],
      ] as const)
        assert.include(yield* refusal(onnx), message)
      for (const prefix of ["", "2d", "a b", "a__b", "a_", "int main", "A", "a".repeat(41), "é"])
        assert.include(yield* refusal(made(ones, [4, 2]), { prefix }), "prefix: expected up to 40 small letters")
    }),
  )
})
