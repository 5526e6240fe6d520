import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Rng, Wasm } from "../../../../src/index.ts"
import { fromData, names } from "../../../../src/rl/algorithms/registry.ts"
import { sizeOf } from "../../../../src/rl/env/Space.ts"
import { scripts } from "../../../../src/rl/export/worker/scripts-node.ts"
import { workerFiles } from "../../../../src/rl/export/worker/workerFiles.ts"
import { withFolder } from "../../../command/cli/effect.ts"
import { policyCases as cases } from "../policyCases.ts"
import { learnerOf } from "../../../../src/rl/learner/learnerOf.ts"

/** Declares the part of `WebAssembly` that these tests use; the types of Node lack it. */
declare const WebAssembly: { readonly Module: new (bytes: Uint8Array) => object }

/** Lets the policy of an exported folder act on observations one after another, and returns its actions. */
const actionsOf = (
  files: Readonly<Record<string, Uint8Array>>,
  observations: ReadonlyArray<ReadonlyArray<number>>,
): Promise<ReadonlyArray<ReadonlyArray<number>>> =>
  withFolder(async (folder) => {
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
    const { instantiate } = await import(pathToFileURL(join(folder, "policy.js")).href)
    const { act, card } = instantiate(new WebAssembly.Module(files["policy.wasm"]))
    let memory: unknown = null
    return observations.map((observation) => {
      const acted = act(observation, card.memory === 0 ? null : memory)
      memory = acted.memory
      return [acted.action].flat()
    })
  })

/** One policy of each kind stays quick: values, logits, a mean, a Gaussian, a plan, and one with a memory. */
const quick = new Set(["ddqn", "es", "td3", "sac", "vin", "iql"])
const withMemory = cases.find(([, { name, input }]) => name === "a2c" && "lstm" in Object(input))?.[1]

describe("an exported policy acts to the bit as the policy does in Node", () => {
  for (const [env, algorithm] of cases) {
    it.effect(
      `of ${algorithm.name} in ${env.id} with ${JSON.stringify(algorithm.input)}`,
      () =>
        Effect.gen(function* () {
          const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
          const { observationSpace, actionSpace } = env
          const task = { observationSpace, actionSpace, numEnvs: 2, totalSteps: 100, seed: 5, model: env }
          const learner = yield* learnerOf(configured, task)
          const random = Rng.stream(8)
          const observations = Array.from({ length: 40 }, () =>
            Array.from({ length: sizeOf(observationSpace) }, () => Math.fround(random.normal())),
          )
          const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
          yield* policy.refresh
          const expected = observations.map((observation) => {
            policy.observations.set(observation)
            policy.program.runSync?.()
            return Array.from(policy.actions)
          })
          const graph = yield* learner.policyGraph ?? Effect.die("no graph")
          const files = workerFiles(
            { ...graph, ...task, algorithm: algorithm.name, env: env.id, step: 0, normalisation: undefined },
            { name: "policy", scripts: yield* scripts },
          )
          assert.deepStrictEqual(yield* Effect.promise(() => actionsOf(files, observations)), expected)
        }).pipe(Effect.scoped, Effect.provide([Wasm.layer, NodeServices.layer])),
      { tags: quick.has(algorithm.name) || algorithm === withMemory ? [] : "slow" },
    )
  }

  it("of every algorithm", () => {
    assert.deepStrictEqual(
      [...new Set(cases.map(([, { name }]) => name))].sort(),
      [...names, ...Object.keys(fromData)].sort(),
    )
  })
})
