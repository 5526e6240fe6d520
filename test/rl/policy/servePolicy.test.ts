import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { routes } from "../../../examples/programs/serve-policy.ts"
import { CartPole, Policy, Ppo, Train, Wasm } from "../../../src/index.ts"
import * as Node from "../../../src/node.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"

describe("the example of a policy in an HTTP handler", () => {
  it("has at most 40 lines", () => {
    const text = readFileSync(join(import.meta.dirname, "../../..", "examples/programs/serve-policy.ts"), "utf8")
    assert.isAtMost(text.trim().split("\n").length, 40)
  })

  it.effect("answers observations with the actions of the run's policy, and wrong ones with an error", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(import.meta.dirname, "../../..", ".tmp-"))),
      (folder) =>
        Effect.gen(function* () {
          const { runDir } = yield* Train.run({
            env: CartPole.env,
            algorithm: Ppo.make({ hidden: [8], nsteps: 16 }),
            totalSteps: 256,
          }).pipe(
            Effect.provide(Layer.mergeAll(Wasm.layer, Node.runStore({ resultsDir: folder }), Recorder.layerSilent)),
          )
          const policy = yield* Effect.provide(Policy.load(runDir), Layer.merge(Wasm.layer, Node.platform))
          const { handler, dispose } = HttpRouter.toWebHandler(routes(runDir), { disableLogger: true })
          const post = (body: string) =>
            Effect.promise(async () => {
              const request = new Request("http://localhost/act", { method: "POST", body })
              const response = await handler(request)
              return [response.status, await response.json()] as const
            })
          for (const observation of [
            [0.01, 0.2, -0.03, 0.1],
            [0, -2, 0.2, 3],
          ]) {
            const { action } = yield* policy.act(observation)
            assert.deepStrictEqual(yield* post(JSON.stringify({ observation })), [200, { action }])
          }
          assert.deepStrictEqual(yield* post(`{"observation":[1]}`), [
            400,
            { error: "observation: expected 4 numbers, found 1" },
          ])
          for (const body of [`{"observation":"1"}`, "{", `{"observations":[1,2,3,4]}`])
            assert.deepStrictEqual(
              yield* post(body),
              [400, { error: 'body: expected JSON such as {"observation":[0.01,0.2]}, with "state" for a recurrent policy' }], // prettier-ignore
              body,
            )
          yield* Effect.promise(dispose)
        }).pipe(Effect.scoped),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
    ),
  )
})
