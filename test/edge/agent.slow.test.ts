import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { build } from "esbuild"
import { waiter } from "../../examples/edge-agent/agent.ts"
import { ObjectStore, RunStore, storedRuns } from "../../src/index.ts"
import * as Node from "../../src/node.ts"
import * as Layout from "../../src/run/Layout.ts"
import { layerNamespace } from "../../src/run/store/objects/edgeStores.ts"
import * as Web from "../../src/web.ts"
import { serveInWorkerd, workerd } from "../bundle/workerd.ts"
import { root } from "../cli/effect.ts"
import { type Body, serve } from "../lm/server.ts"
import { namespaceOf } from "../run/store/objects/bindings.ts"
import { type NamespaceServer, serveNamespace } from "./namespace.ts"

/** Answers as a waiter who reads the notes in the prompt, and writes down what the feedback says. */
const say = ({ messages }: Body): string => {
  const told = String(messages.at(-1)?.content)
  const name = [...told.matchAll(/(\w+): The usual/g)].at(-1)?.[1]
  const [line, drink] = new RegExp(`${name} drinks (\\w+)`).exec(told) ?? ["Nothing to learn", "coffee"]
  return String(messages[0].content).startsWith("Reflect") ? `${line}.` : drink
}

const config = (kv: number, model: string): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      bindings = [
        (name = "RUNS", kvNamespace = "kv"),
        (name = "MODEL", text = "waiter"),
        (name = "MODEL_URL", text = "${model}"),
      ],
    )),
    (name = "kv", external = (address = "127.0.0.1:${kv}", http = ())),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`

/** The bundled worker of the example in a folder, served by workerd until the scope closes. */
const edge = Effect.fnUntraced(function* (model: string) {
  const kv = yield* Effect.acquireRelease(
    Effect.promise(() => serveNamespace()),
    (server) => Effect.sync(() => server.close()),
  )
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(root, ".tmp-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
  )
  yield* Effect.promise(() =>
    build({
      entryPoints: [join(root, "examples/edge-agent/worker.ts")],
      outfile: join(folder, "worker.js"),
      bundle: true,
      format: "esm",
      platform: "browser",
      target: "es2023",
      logLevel: "silent",
    }),
  )
  writeFileSync(join(folder, "workerd.capnp"), config(kv.port, model))
  const served = yield* Effect.acquireRelease(
    Effect.promise(() => serveInWorkerd(folder)),
    (running) => Effect.promise(() => running.stop()),
  )
  return { kv, served }
})

const post = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(url, { method: "POST" })
    const body: Readonly<Record<string, unknown>> = JSON.parse(await response.text())
    return { status: response.status, body }
  })

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
const storeOf = ({ objects }: NamespaceServer): Layer.Layer<ObjectStore> =>
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

      const { kv, served } = yield* edge(model.url)
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
