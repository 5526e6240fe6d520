import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { waiter } from "../../examples/agents/edge-agent/agent.ts"
import { ObjectStore, RunStore, storedRuns } from "../../src/index.ts"
import * as Node from "../../src/node.ts"
import * as Layout from "../../src/run/Layout.ts"
import { layerNamespace } from "../../src/run/store/objects/edgeStores.ts"
import * as Web from "../../src/web.ts"
import { workerd } from "../bundle/workerd.ts"
import { type Body, serve } from "../agents/lm/server.ts"
import { namespaceOf } from "../run/store/objects/bindings.ts"
import { edge, post } from "./edge.ts"
import { serveNamespace } from "./namespace.ts"

/** Answers as a waiter who reads the notes in the prompt, and writes down what the feedback says. */
const say = ({ messages }: Body): string => {
  const told = String(messages.at(-1)?.content)
  const name = [...told.matchAll(/(\w+): The usual/g)].at(-1)?.[1]
  const [line, drink] = new RegExp(`${name} drinks (\\w+)`).exec(told) ?? ["Nothing to learn", "coffee"]
  return String(messages[0].content).startsWith("Reflect") ? `${line}.` : drink
}

/** Serves guests in Node, in a new run or in one that is in the store. */
const inNode = (served: number, baseUrl: string, resume?: string) =>
  waiter(served, { model: "waiter", baseUrl }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Web.recorder(),
        Node.platform,
        RunStore.layerObjects({ time: new Date(0), ...(resume === undefined ? {} : { resume }) }),
      ),
    ),
  )

/** A store over the objects that the worker has written. */
const storeOf = ({ objects }: { readonly objects: ReadonlyMap<string, Uint8Array> }): Layer.Layer<ObjectStore> =>
  layerNamespace(namespaceOf(new Map([...objects].map(([key, bytes]) => [key, Uint8Array.from(bytes).buffer]))))

const rolloutsOf = (run: string) =>
  Effect.gen(function* () {
    const bytes = yield* (yield* ObjectStore).get(`${run}/${Layout.trainRollouts}`)
    return new TextDecoder().decode(bytes).trim().split("\n")
  })

describe.skipIf(workerd === undefined)("an agent in workerd", () => {
  it.effect("leaves the rollouts that it leaves in Node, and its checkpoint resumes in Node and in a worker", () =>
    Effect.gen(function* () {
      const model = yield* serve({ say })
      const whole = yield* Effect.gen(function* () {
        const { runDir, digest } = yield* inNode(8, model.url)
        return { digest, rollouts: yield* rolloutsOf(runDir) }
      }).pipe(Effect.provide(ObjectStore.layerMemory))
      assert.lengthOf(whole.rollouts, 8)
      assert.isTrue(whole.rollouts.some((line) => line.includes("Ada drinks tea")))

      const kv = yield* serveNamespace
      const served = yield* edge({
        entry: "examples/agents/edge-agent/worker.ts",
        store: { kind: "kvNamespace", port: kv.port },
        texts: { MODEL: "waiter", MODEL_URL: model.url },
      })
      const first = yield* post(`${served.url}/?guests=4`)
      assert.strictEqual(first.status, 200, `${JSON.stringify(first.body)} ${served.printed()}`)
      const atTheEdge = storeOf(kv)
      const [run] = yield* Effect.provide(storedRuns, atTheEdge)
      assert.strictEqual(first.body.runDir, run)
      assert.deepStrictEqual(yield* Effect.provide(rolloutsOf(run), atTheEdge), whole.rollouts.slice(0, 4))

      const resumed = yield* Effect.gen(function* () {
        const { digest, trainEpisodes } = yield* inNode(8, model.url, run)
        assert.strictEqual(trainEpisodes, 8)
        return { digest, rollouts: yield* rolloutsOf(run) }
      }).pipe(Effect.provide(atTheEdge))
      assert.deepStrictEqual(resumed, whole)

      const second = yield* post(`${served.url}/?guests=8`)
      assert.deepInclude(second.body, { runDir: run, guests: 8, digest: whole.digest })
      assert.deepStrictEqual(yield* Effect.provide(rolloutsOf(run), storeOf(kv)), whole.rollouts)
      assert.strictEqual((yield* post(`${served.url}/?guests=none`)).status, 400)
    }),
  )
})
