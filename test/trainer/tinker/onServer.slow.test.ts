import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import type { Plain } from "../../../src/base/config/Config.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { modelToSave, openBaseModel } from "../../../src/trainer/baseModel.ts"
import { TinkerDelays } from "../../../src/trainer/tinker/client/connection.ts"
import { SecondsToSave } from "../../../src/trainer/tinker/remote/trainOnServer.ts"
import { disk } from "../../run/store/disk.ts"
import { runConfig, trained, validated } from "../smallTraining.ts"
import { startFaultyProxy } from "./faultyProxy.ts"
import { closeShared, openServed, startTinker, temporaryFolder, type TinkerClient } from "./tinkerServer.ts"

const width = 32
const rank = 2
const template =
  "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"
const model = {
  type: "scratch",
  hiddenSize: 16,
  layers: 1,
  heads: 2,
  maxPositions: width,
  intermediateSize: null,
  initializerRange: 0.2,
  tokenizer: { alphabet: "abcdefghijklmnopqrstuvwxyz: ", template },
} as const

/** The folder of the model is named like the server's model. */
const folder = join(mkdtempSync(join(tmpdir(), "on-server-")), "base")
const scope = Effect.runSync(Scope.make())
let served: ReturnType<typeof openServed>

beforeAll(async () => {
  await Effect.runPromise(
    Effect.gen(function* () {
      const base = yield* openBaseModel(model, { baseDir: ".", seed: 1 })
      yield* LmDirectory.save(yield* onDisk(join(folder, "..")), "base", modelToSave(base))
    }).pipe(Effect.provide(disk)),
  )
  served = openServed(scope, { model: { type: "folder", path: folder }, rank, maxLength: width, adapters: 16 })
  await served
})
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await closeShared()
  rmSync(join(folder, ".."), { recursive: true, force: true })
})

const start = (directory: string): Promise<TinkerClient> =>
  startTinker(directory, { maxRank: rank, maxLength: width }, undefined, served)

const runs = {
  a: runConfig(1, { ...validated, objective: { type: "grpo", kl: null }, max_steps: 4, checkpoint: { every: 1 } }),
}

const configOf = (trainer: Plain) => ({
  kind: "multirun",
  name: "small",
  seed: 1,
  model: { type: "folder", path: folder },
  trainer: {
    rows: 32,
    width,
    block: 8,
    max_runs: Object.keys(runs).length,
    share_prompts: false,
    lora: { rank, alpha: 32 },
    ...trainer,
  },
  broadcast: { keep: 0 },
  runs,
})

const onServer = (server: { readonly url: string }) =>
  configOf({ type: "tinker", base_url: server.url.replace("/api/v1", "") })

/** Records the metrics of the updates. */
const metricsIn = (into: Array<Plain>) => (event: RunEvent) => {
  if (event._tag === "UpdateApplied" && event.metrics["losses/loss"] !== undefined) into.push({ ...event.metrics })
}

/** Returns the samples of all steps of a run, as bytes. */
const samplesOf = (runDir: string): Plain =>
  Object.fromEntries(
    [0, 1, 2, 3].map((step) => [
      step,
      readFileSync(join(runDir, `run_a/rollouts/step_${step}/samples.safetensors`)).toString("base64"),
    ]),
  )

const adapterOnServer = (directory: string, runDir: string): Plain => {
  const { path } = JSON.parse(readFileSync(join(runDir, "run_a/checkpoints/step_4/tinker.json"), "utf8"))
  const [, id, name] = /^tinker:\/\/(.+)\/weights\/(.+)$/.exec(path) ?? []
  const files = readdirSync(directory, { recursive: true }).map(String)
  const file = files.find(
    (one) => one.includes(`${id}`) && one.includes(`${name}`) && one.endsWith("state.safetensors"),
  )
  assert.isDefined(file, files.join("\n"))
  return numbers(readFileSync(join(directory, String(file))), "numbers.")
}

const numbers = (bytes: Uint8Array, prefix: string): Plain =>
  Object.fromEntries(
    Object.entries(Safetensors.decode(bytes)).flatMap(([name, { data }]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), [...data].map(Number)]] : [],
    ),
  )

/** Trains on a server. Requests that fail are sent again at once. */
const trainedOn = (server: { readonly url: string }, place: Parameters<typeof trained>[1]) =>
  trained(onServer(server), place).pipe(
    Effect.provideService(
      TinkerDelays,
      Array.from({ length: 40 }, () => 0),
    ),
  )

const resultsDir = temporaryFolder()

/** Interrupts a training after two updates, and returns its folder. A folder beside it has what a killed process leaves. */
const interrupted = (server: { readonly url: string }, before: () => void) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    let runDir = ""
    const onEvent = (event: RunEvent) => {
      if (event._tag !== "UpdateApplied" || event.update < 2) return
      if (!existsSync(`${runDir}-killed`))
        cpSync(runDir, `${runDir}-killed`, { recursive: true, verbatimSymlinks: true })
      Deferred.doneUnsafe(reached, Effect.void)
    }
    const onOpen = (folder: string) => void (runDir = folder)
    const fiber = yield* Effect.forkChild(trainedOn(server, { resultsDir, onOpen, onEvent }))
    yield* Deferred.await(reached)
    before()
    yield* Fiber.interrupt(fiber)
    return runDir
  })

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)

describe("a training on a server of Tinker's protocol", () => {
  it("has the bits of a training in this process", async () => {
    const here: Array<Plain> = []
    const there: Array<Plain> = []
    const local = await run(trained(configOf({}), { resultsDir, onEvent: metricsIn(here) }))
    const directory = temporaryFolder()
    const server = await start(directory)
    const remote = await run(trainedOn(server, { resultsDir, onEvent: metricsIn(there) }))
    await server.stop()
    assert.strictEqual(here.length, 4)
    const withoutEntropy = here.map((metrics) =>
      Object.fromEntries(Object.entries(metrics).filter(([name]) => name !== "losses/entropy")),
    )
    assert.deepStrictEqual(there, withoutEntropy)
    assert.deepStrictEqual(samplesOf(remote.runDir), samplesOf(local.runDir))
    assert.deepStrictEqual(remote.validation, local.validation)
    const file = join(local.runDir, "run_a/checkpoints/step_4/weights.safetensors")
    assert.deepStrictEqual(adapterOnServer(directory, remote.runDir), numbers(readFileSync(file), ""))
  })

  it("ends with the same weights over a network that loses a third of all requests and answers", async () => {
    const calm = temporaryFolder()
    const one = await start(calm)
    const undisturbed = await run(trainedOn(one, { resultsDir }))
    await one.stop()
    const directory = temporaryFolder()
    const server = await start(directory)
    const proxy = await startFaultyProxy(server.url.replace("/api/v1", ""), 1, 0.33)
    const disturbed = await run(trainedOn(proxy, { resultsDir }))
    proxy.close()
    await server.stop()
    assert.isAbove(
      [...proxy.mistakes.values()].reduce((sum, count) => sum + count, 0),
      40,
    )
    assert.sameMembers([...proxy.mistakes.keys()], ["408", "429", "500", "503", "dropped", "lost", "twice", "gone"])
    assert.deepStrictEqual(samplesOf(disturbed.runDir), samplesOf(undisturbed.runDir))
    assert.deepStrictEqual(adapterOnServer(directory, disturbed.runDir), adapterOnServer(calm, undisturbed.runDir))
  })

  it("continues after an interruption, and from the files that a killed process has left", async () => {
    const directory = temporaryFolder()
    const server = await start(directory)
    const whole = await run(trainedOn(server, { resultsDir }))
    const expected = adapterOnServer(directory, whole.runDir)
    const resume = await run(interrupted(server, () => undefined))
    // A server that answers nothing any more cannot save: the checkpoint of the last step stays.
    const proxy = await startFaultyProxy(server.url.replace("/api/v1", ""), 1, 0)
    const unsaved = await run(Effect.provideService(interrupted(proxy, proxy.fallSilent), SecondsToSave, 0))
    proxy.close()
    for (const runDir of [resume, `${resume}-killed`, unsaved]) {
      const resumed = await run(trainedOn(server, { resultsDir, resume: runDir }))
      assert.strictEqual(resumed.steps, 4)
      assert.deepStrictEqual(samplesOf(runDir), samplesOf(whole.runDir))
      assert.deepStrictEqual(adapterOnServer(directory, runDir), expected, runDir)
    }
    await server.stop()
  })
})
