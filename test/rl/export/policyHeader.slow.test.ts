import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  A2c,
  type Algorithm,
  CartPole,
  Dqn,
  type Env,
  Network,
  Pendulum,
  Ppo,
  Sac,
  SpaceInvaders,
} from "../../../src/index.ts"
import { rowSpaceOf } from "../../../src/rl/env/Env.ts"
import { sampleInto } from "../../../src/rl/env/Space.ts"
import { policyHeader } from "../../../src/rl/export/policyHeader.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { lamps, lock } from "../env/locks.ts"
import { courier } from "../env/courier.ts"
import { compiledActions, compilers, exportedPolicy, played } from "./headers.ts"
import { policyCases } from "./policyCases.ts"
import { isInstalled } from "./programs.ts"

/** Compiles the header of a policy, and compares its actions with the policy's own, bit for bit. */
const compare = (
  env: Env.Env,
  algorithm: Algorithm.Algorithm,
  {
    rows,
    ways,
    normalised = false,
  }: { rows: number; ways: ReadonlyArray<ReadonlyArray<string>>; normalised?: boolean },
) =>
  Effect.gen(function* () {
    const onnx = yield* exportedPolicy(env, algorithm, { normalised })
    const header = yield* policyHeader(onnx)
    const space = rowSpaceOf(env)
    const mask = new Int32Array(space._tag === "Masked" ? space.choices.length : 0)
    const expected = yield* played(onnx, {
      rows,
      draw: (random, row) => {
        sampleInto(env.observationSpace, random, row)
        row.forEach((value, at) => void (Math.abs(value) > 1e6 && (row[at] = random.normal())))
        if (space._tag !== "Masked") return
        // Some choices are not allowed, but never all.
        const from = row.length - space.choices.reduce((sum, count) => sum + count, 0)
        for (let at = from; at < row.length; at++) row[at] = random.integer(2)
        let start = from
        for (const [i, count] of space.choices.entries()) {
          mask[i] = random.integer(count)
          row[start + mask[i]] = 1
          start += count
        }
      },
    })
    const bytes = new Uint8Array(expected.actions.buffer)
    for (const way of ways) assert.deepEqual(compiledActions(header, way, expected), bytes, way.join(" "))
    return new Set(expected.actions).size
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

const hidden = [64, 64]
const main: Readonly<Record<string, readonly [Env.Env, Algorithm.Algorithm]>> = {
  "with convolutions, of a game of MinAtar": [SpaceInvaders.env, Ppo.make({ hidden })],
  "with an LSTM": [Pendulum.env, A2c.make({ hidden, lstm: 32 })],
  "of SAC": [Pendulum.env, Sac.make({ hidden })],
  "of PPO for choices": [CartPole.env, Ppo.make({ hidden })],
}

const {
  attention,
  convolution,
  dense,
  flatten,
  gelu,
  mean,
  norm,
  positions,
  relu,
  reshape,
  residual,
  sequential,
  silu,
} = Network
const tokens = sequential([
  reshape(4, 1),
  dense(16),
  positions(),
  residual([norm, attention({ heads: 4 })]),
  silu,
  mean,
])
const image = sequential([
  convolution({ filters: 6, kernel: 3, stride: 2, padding: 1 }),
  relu,
  flatten,
  dense(20),
  norm,
  gelu,
])

/** Networks from the key `network`, and actions of several choices and switches. */
const networks: Readonly<Record<string, readonly [Env.Env, Algorithm.Algorithm]>> = {
  "with attention": [CartPole.env, Ppo.make({ network: { actor: tokens, critic: tokens } })],
  "with padded convolutions and a norm": [SpaceInvaders.env, Dqn.make({ network: image })],
  "of several choices, which reads choices": [lock, Ppo.make({ hidden })],
  "of switches": [lamps, A2c.make({ hidden })],
  "of state-dependent exploration": [Pendulum.env, Ppo.make({ hidden, sde: {} })],
}

describe("a policy as a header of C acts as the policy does, bit for bit", () => {
  for (const [name, [env, algorithm]] of Object.entries(main)) {
    for (const [compiler, way] of Object.entries(compilers)) {
      it.effect(`${name}, over 1,000 observations, compiled by ${compiler}`, ({ skip }) => {
        if (!isInstalled(compiler)) skip(`${compiler} is not installed`)
        return Effect.map(compare(env, algorithm, { rows: 1000, ways: [way], normalised: true }), (different) =>
          assert.isAbove(different, 1),
        )
      })
    }
  }

  for (const [index, [env, algorithm]] of policyCases.entries()) {
    it.effect(`${index}: ${algorithm.name} in ${env.id}`, ({ skip }) => {
      if (!isInstalled("gcc")) skip("gcc is not installed")
      return Effect.asVoid(compare(env, algorithm, { rows: 50, ways: [compilers.gcc] }))
    })
  }

  for (const [name, [env, algorithm]] of Object.entries(networks)) {
    it.effect(name, ({ skip }) => {
      if (!isInstalled("gcc")) skip("gcc is not installed")
      return Effect.asVoid(compare(env, algorithm, { rows: 100, ways: [compilers.gcc] }))
    })
  }

  it.effect("with parts of observations and action masks", ({ skip }) => {
    if (!isInstalled("gcc")) skip("gcc is not installed")
    const ways = [compilers.gcc]
    return Effect.asVoid(compare(courier(4), Ppo.make({ hidden }), { rows: 200, ways, normalised: true }))
  })

  it.effect("also if the compiler may join products and sums to one operation", ({ skip }) => {
    if (!isInstalled("gcc") || process.arch !== "x64") skip("gcc for x64 is not installed")
    const ways = [["gcc", "-O3", "-march=native", "-ffp-contract=fast"]]
    return Effect.asVoid(compare(Pendulum.env, Sac.make({ hidden }), { rows: 200, ways }))
  })
})
