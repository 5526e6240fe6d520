import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { assert, describe, it } from "vitest"
import { type Plain, toCamelCase } from "../../../src/base/config/Config.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { modelToSave, openBaseModel } from "../../../src/trainer/baseModel.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import { makeSampleReaders } from "../../../src/trainer/teacher/sampleReaders.ts"
import { listenFor } from "../../decoder/serve/realServer.ts"
import { serveHttp } from "../../servers/listen.ts"
import { configOf, interruptedAndResumed, resultsFolder, runConfig, runFiles, trained } from "../smallTraining.ts"

const decodeModel = Schema.decodeUnknownSync(MultiRunConfig.fields.model)

/** Saves the model of the small training with other random weights, and returns its folder. */
const savedTeacher = Effect.fnUntraced(function* (folder: string, seed: number, changes: Plain = {}) {
  const { model } = configOf({})
  const base = yield* openBaseModel(decodeModel(toCamelCase({ ...model, ...changes })), { baseDir: folder, seed })
  yield* LmDirectory.save(yield* onDisk(folder), `teacher-${seed}`, modelToSave(base))
  return join(folder, `teacher-${seed}`)
}, Effect.provide(NodeServices.layer))

/** The settings of a run that a teacher teaches. */
const taught = (seed: number, teacher: Plain, more: Plain = {}) =>
  runConfig(seed, { objective: { type: "reinforce" }, teacher, batch: { size: 8, group_size: 1 }, ...more })

const pairsIn = (folder: string): string => {
  const file = join(folder, "pairs.jsonl")
  const lines = ["abc", "de", "fgh", "ij", "kl"].map((word) => {
    const reversed = [...word].reverse().join("")
    return `${JSON.stringify({ prompt: `Q: reverse ${word}`, chosen: reversed, rejected: word })}\n`
  })
  writeFileSync(file, lines.join(""))
  return file
}

/** Returns a metric of a step from the report next to the samples. */
const metricOf = (runDir: string, run: string, step: number, name: string): unknown =>
  JSON.parse(runFiles(runDir, run).textOf(`rollouts/step_${step}/report.json`) ?? "{}").metrics?.[name]

const advantagesOf = (runDir: string, run: string, step: number): ArrayLike<number> =>
  Safetensors.decode(readFileSync(join(runDir, `run_${run}`, `rollouts/step_${step}`, "samples.safetensors")))[
    "advantages"
  ].data

describe("distillation and preferences", () => {
  it("train several runs with different teachers, and resume to the bit", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const same = yield* savedTeacher(resultsDir, 1)
        const other = yield* savedTeacher(resultsDir, 2)
        const none = { supervised: { steps: 0 } }
        const { train_dataset: tasks, ...withoutTasks } = runConfig(4)
        // The hint needs room in the window, too.
        const shortest = { ...tasks, max_letters: 2 }
        const { url } = yield* listenFor(other).pipe(Effect.provide(NodeServices.layer))
        const config = configOf({
          served: taught(1, { type: "server", model: "base", base_url: `${url}/v1` }, none),
          same: taught(1, { type: "folder", path: same }, none),
          other: taught(1, { type: "folder", path: other }, none),
          hinted: taught(1, { type: "folder", path: same, hint: "{answer}" }, { ...none, train_dataset: shortest }),
          own: taught(2, { type: "self", hint: "{answer}", supervised_hints: 1 }, { train_dataset: shortest }),
          pairs: { ...withoutTasks, ...none, objective: { type: "dpo" }, pairs: { dataset_path: pairsIn(resultsDir) } },
        })
        const whole = yield* trained(config, { resultsDir })
        const { runDir } = whole
        // At first the model is its own teacher, whose adapter changes nothing.
        const first = Array.from(advantagesOf(runDir, "same", 0), Math.abs)
        assert.isBelow(Math.max(...first), 1e-5)
        assert.closeTo(Number(metricOf(runDir, "same", 0, "sampling/teacher_kl")), 0, 1e-5)
        const others = advantagesOf(runDir, "other", 0)
        assert.isAbove(Math.max(...Array.from(others, Math.abs)), 0.01)
        // Our own server gives the log-probabilities of the same teacher.
        const served = advantagesOf(runDir, "served", 0)
        assert.strictEqual(served.length, others.length)
        for (let at = 0; at < others.length; at++) assert.closeTo(served[at], others[at], 1e-4)
        assert.isAbove(Math.max(...Array.from(advantagesOf(runDir, "hinted", 0), Math.abs)), 1e-4)
        assert.isUndefined(metricOf(runDir, "own", 0, "sampling/teacher_kl"))
        assert.isNumber(metricOf(runDir, "own", 1, "sampling/teacher_kl"))
        assert.strictEqual(metricOf(runDir, "pairs", 0, "sampling/samples"), 16)

        const resumed = yield* interruptedAndResumed(config, resultsDir, 5)
        assert.notStrictEqual(resumed.runDir, runDir)
        assert.strictEqual(resumed.digest, whole.digest)
      }).pipe(Effect.scoped),
    ))

  it("open a teacher's folder once for all runs that need it at the same time", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const folder = yield* savedTeacher(yield* resultsFolder, 1)
        const base = yield* openBaseModel({ type: "folder", path: folder }, { baseDir: ".", seed: 0 })
        const { trainer: sizes } = Schema.decodeUnknownSync(MultiRunConfig)(toCamelCase(configOf({})))
        const readers = yield* makeSampleReaders({ base, baseDir: ".", sizes })
        assert.isDefined(readers)
        const both = yield* Effect.scoped(Effect.all([readers.ofFolder(folder), readers.ofFolder(folder)]))
        assert.strictEqual(both[0], both[1])
        const { message } = yield* Effect.flip(readers.ofFolder(`${folder}-missing`))
        assert.match(message, /-missing/)
        assert.notStrictEqual(yield* readers.ofFolder(folder), both[0], "it was closed when nobody needed it")
      }).pipe(Effect.scoped, Effect.provide([Wasm.layer, NodeServices.layer, FetchHttpClient.layer])),
    ))

  it("evict a run with the reason, if its teacher cannot teach it", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const tokenizer = { ...configOf({}).model.tokenizer, alphabet: "abcdefghijklmnopqrstuvwxy#: " }
        const foreign = yield* savedTeacher(resultsDir, 3, { tokenizer })
        const smaller = yield* savedTeacher(resultsDir, 4, { max_positions: 20 })
        const broken = yield* savedTeacher(resultsDir, 5)
        const file = join(broken, "model.safetensors")
        const bytes = readFileSync(file)
        bytes.fill(0xff, bytes.length - 64 * 4)
        writeFileSync(file, bytes)
        const answers: Readonly<Record<string, (ids: ReadonlyArray<number>) => unknown>> = {
          none: () => ({ choices: [{ text: "a" }] }),
          short: (ids) => ({ choices: [{ prompt_logprobs: ids.slice(1).map(() => null) }] }),
          missing: (ids) => ({ choices: [{ prompt_logprobs: ids.map(() => ({ "999": { logprob: -1 } })) }] }),
          infinite: (ids) => ({ choices: [{ prompt_logprobs: ids.map((id) => ({ [id]: { logprob: null } })) }] }),
          foreign: (ids) => ({
            choices: [{ prompt_logprobs: ids.map((id) => ({ [id]: { logprob: -1, decoded_token: "zz" } })) }],
          }),
          right: (ids) => ({ choices: [{ prompt_logprobs: ids.map((id) => ({ [id]: { logprob: -1 } })) }] }),
        }
        const { url } = yield* serveHttp((request, response) => {
          let text = ""
          request.on("data", (chunk) => (text += String(chunk)))
          request.on("end", () => {
            const { model, prompt } = JSON.parse(text)
            response.setHeader("content-type", "application/json")
            response.end(JSON.stringify(answers[model](prompt)))
          })
        })
        const server = (model: string) => ({ type: "server", model, base_url: url })
        const short = { supervised: { steps: 0 }, max_steps: 1 }
        const config = configOf({
          folder: taught(1, { type: "folder", path: foreign }, short),
          smaller: taught(1, { type: "folder", path: smaller }, short),
          broken: taught(1, { type: "folder", path: broken }, short),
          ...Object.fromEntries(Object.keys(answers).map((model) => [model, taught(1, server(model), short)])),
        })
        let runDir = ""
        yield* Effect.flip(trained(config, { resultsDir, onOpen: (directory) => void (runDir = directory) }))
        const evicted = (run: string) => runFiles(runDir, run).evicted() ?? ""
        assert.match(
          evicted("folder"),
          /teacher\.path: .*expected a teacher with the tokens of the trained model; token \d+ is/,
        )
        assert.match(evicted("smaller"), /teacher\.path: .*expected a teacher for at least 24 tokens/)
        assert.match(evicted("broken"), /expected a finite log-probability of the teacher, found NaN/)
        assert.match(evicted("none"), /prompt_logprobs: the server sent none/)
        assert.match(evicted("short"), /expected \d+ entries, one for each token of the prompt, found/)
        assert.match(evicted("missing"), /expected a finite log-probability, found none/)
        assert.match(evicted("infinite"), /expected a finite log-probability, found none/)
        assert.match(evicted("foreign"), /expected a teacher with the tokens of the trained model; token \d+ is "zz"/)
        assert.strictEqual(evicted("right"), "")
      }).pipe(Effect.scoped),
    ))
})
