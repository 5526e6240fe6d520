import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import { type Env, rowSpaceOf } from "../../../../src/rl/env/Env.ts"
import { drawAllowed } from "../../../../src/rl/env/internal/rows.ts"
import * as Normalise from "../../../../src/rl/env/Normalise.ts"
import * as Space from "../../../../src/rl/env/Space.ts"
import { scripts } from "../../../../src/rl/export/worker/scripts-node.ts"
import { workerFiles } from "../../../../src/rl/export/worker/workerFiles.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { withFolder } from "../../../command/cli/effect.ts"
import { courier } from "../../env/courier.ts"
import { lamps, lock } from "../../env/locks.ts"
import { learnerOf } from "../../../../src/rl/learner/learnerOf.ts"

/** Declares the part of `WebAssembly` that these tests use; the types of Node lack it. */
declare const WebAssembly: { readonly Module: new (bytes: Uint8Array) => object }

interface Exported {
  readonly act: (observation: unknown, memory?: null, mask?: unknown) => { readonly action: unknown }
  readonly card: { readonly observation: { readonly schema: object }; readonly mask: number }
  /** Rows of the env, and the actions of the policy in Node. */
  readonly steps: ReadonlyArray<{ readonly row: ReadonlyArray<number>; readonly action: ReadonlyArray<number> }>
}

/** Exports an untrained policy with statistics of the env's observations, and lets it act in Node. */
const exported = (env: Env, use: (policy: Exported) => void) =>
  Effect.gen(function* () {
    const algorithm = Ppo.make({ hidden: [8] })
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const space = rowSpaceOf(env)
    const task = { observationSpace: space, actionSpace: env.actionSpace, numEnvs: 1, totalSteps: 100, seed: 5 }
    const learner = yield* learnerOf(configured, task)
    const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
    yield* policy.refresh
    const batch = Normalise.observations(Batch.make(env, 1))
    const raw = Batch.make(env, 1)
    const random = stream(8)
    const actions = new Int32Array(Space.sizeOf(env.actionSpace))
    const draw = () => {
      if (space._tag === "Masked") drawAllowed(space, raw.observations, random, actions)
      else Space.sampleInto(env.actionSpace, random, actions)
    }
    const play = (envs: ReadonlyArray<typeof raw>, each: () => void) => {
      for (const one of envs) one.reset(1)
      for (let step = 0; step < 30; step++) {
        each()
        draw()
        for (const one of envs) one.step(actions)
      }
    }
    play([batch, raw], () => {})
    const moments = batch.observationMoments
    const seen = Normalise.observations(Batch.make(env, 1), { moments, frozen: true })
    const steps: Array<Exported["steps"][number]> = []
    play([seen, raw], () => {
      policy.observations.set(seen.observations)
      policy.program.runSync?.()
      steps.push({ row: Array.from(raw.observations), action: Array.from(policy.actions) })
    })
    const graph = yield* learner.policyGraph ?? Effect.die("no graph")
    const normalisation = Normalise.constantsOf(moments, { space })
    const files = workerFiles(
      { ...graph, ...task, algorithm: "ppo", env: env.id, step: 0, normalisation },
      { name: "policy", scripts: yield* scripts },
    )
    yield* Effect.promise(() =>
      withFolder(async (folder) => {
        for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
        const { instantiate } = await import(pathToFileURL(join(folder, "policy.js")).href)
        use({ ...instantiate(new WebAssembly.Module(files["policy.wasm"])), steps })
      }),
    )
  }).pipe(Effect.scoped, Effect.provide([Wasm.layer, NodeServices.layer]))

const complaint = (body: () => unknown): string => {
  try {
    body()
  } catch (error) {
    if (error instanceof Error && error.name === "PolicyError") return error.message
    throw error
  }
  return "no error"
}

describe("an exported policy of an env with parts, several choices or masks", () => {
  for (const env of [courier(4), lock, lamps]) {
    it.effect(`acts in ${env.id} as the policy does in Node, on flat and structured observations`, () =>
      exported(env, ({ act, card, steps }) => {
        const size = Space.sizeOf(env.observationSpace)
        const isValid = new Ajv2020({ strict: false }).compile(card.observation.schema)
        for (const { row, action } of steps) {
          const [flat, mask] = [row.slice(0, size), card.mask === 0 ? undefined : row.slice(size)]
          const observation = Space.unflatten(env.observationSpace, flat)
          assert.deepStrictEqual([act(observation, null, mask).action].flat(), [...action])
          assert.deepStrictEqual([act(flat, null, mask?.map(Boolean)).action].flat(), [...action])
          assert.isTrue(isValid(observation) && isValid(flat))
        }
        assert.isAbove(new Set(steps.map(({ action }) => String(action))).size, 1)
      }),
    )
  }

  it.effect("obeys the mask, and refuses wrong masks and parts", () =>
    exported(courier(4), ({ act, steps }) => {
      const observation = Space.unflatten(courier(4).observationSpace, steps[0].row)
      const best = act(observation, null, "all").action
      for (let only = 0; only < 4; only++) {
        const mask = [0, 1, 2, 3].map((choice) => choice === only)
        assert.strictEqual(act(observation, null, mask).action, only)
      }
      assert.strictEqual(act(observation, null, [1, 1, 1, 1]).action, best)
      const wrong: ReadonlyArray<readonly [unknown, unknown, string]> = [
        [observation, [0, 0, 0, 0], "mask: expected an allowed choice among 0 to 3, found none"],
        [observation, [1, 0, 0], "mask: expected 4 numbers, found 3 elements"],
        [observation, [1, 0, 0, 2], "mask[3]: expected 0 or 1, found 2"],
        [observation, null, 'mask: expected 4 zeros and ones, a 1 for each allowed choice, or "all"; found none'],
        [{ ...observation, letter: 2 }, null, "observation.letter: expected a whole number from 0 to 1, found 2"],
        [{ ...observation, fuel: [] }, null, "observation.fuel: expected 1 number, found 0 elements"],
        [{ map: observation.map }, null, "observation.fuel: expected 1 number, found undefined"],
        [[1, 2], null, "observation.map: expected 48 numbers, or arrays of shape [3, 4, 4], found undefined"],
      ]
      for (const [one, mask, message] of wrong)
        assert.strictEqual(
          complaint(() => act(one, null, mask)),
          message,
        )
      assert.strictEqual(act(observation, null, "all").action, best)
    }),
  )
})
