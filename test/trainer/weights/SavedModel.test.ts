import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Decoders } from "../../../src/agents/lm/Decoders.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { makeDecoders } from "../../../src/trainer/weights/decoders.ts"
import { findModel, openModel } from "../../../src/trainer/weights/SavedModel.ts"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"

/** A trainer's folder with two runs, which have checkpoints of steps 2 and 3, and one broadcast. */
let trainer = ""
const scope = Scope.makeUnsafe()

beforeAll(() =>
  Effect.runPromise(
    Effect.gen(function* () {
      const run = runConfig(1, { checkpoint: { every: 2 }, lora: { rank: 1, alpha: 8 } })
      const config = { ...configOf({ a: run, b: { ...run, seed: 2 } }), broadcast: { keep: 1 } }
      trainer = (yield* trained(config, { resultsDir: yield* resultsFolder })).runDir
    }).pipe(Effect.provideService(Scope.Scope, scope)),
  ),
)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const wasm = Effect.map(Layer.build(Wasm.layer), Context.get(Backend))
const services = Layer.effect(Decoders, makeDecoders(wasm)).pipe(
  Layer.provideMerge(Layer.merge(NodeServices.layer, FetchHttpClient.layer)),
)
const provided = <A, E>(effect: Effect.Effect<A, E, Lms.LmNeeds | Scope.Scope>) =>
  Effect.runPromise(Effect.provide(Effect.scoped(effect), services))

/** Returns the likeliest answer of a model, and the weights from which it came. */
const answerOf = Effect.fnUntraced(function* (folder: string, baseDir = ".") {
  const config = LmConfig.make({ model: `decoder:${folder}`, temperature: 0, maxOutputTokens: 6 })
  const lm = yield* Lms.open(config, { baseDir })
  const request = LmConfig.request(config, [{ role: "user", content: "reverse abc" }])
  const { content, tokens } = yield* lm.complete({ ...request, traceTokens: true })
  return { content, weights: tokens?.weights, logprobs: tokens?.logprobs }
})
const messageOf = (folder: string, step?: number) =>
  Effect.map(Effect.flip(Effect.flatMap(findModel(folder, step), openModel)), ({ message }) => message)

describe("decoder:FOLDER", () => {
  it("asks the newest weights of a run, a broadcast, a checkpoint and a base model", () =>
    provided(
      Effect.gen(function* () {
        const run = join(trainer, "run_a")
        const newest = yield* answerOf(run)
        assert.deepStrictEqual(newest.weights, { model: "run_a", step: 3 })
        assert.isAbove(newest.content.length, 0)
        assert.deepStrictEqual(yield* answerOf("run_a/broadcast/step_3", trainer), newest)
        assert.deepStrictEqual(yield* answerOf(join(run, "checkpoints/step_3")), newest)
        const earlier = yield* answerOf(join(run, "checkpoints/step_2"))
        assert.deepStrictEqual(earlier.weights, { model: "run_a", step: 2 })
        const base = yield* answerOf(join(trainer, "base"))
        assert.deepStrictEqual(base.weights, { model: "base", step: 0 })
        const other = yield* answerOf(join(trainer, "run_b"))
        const all = [newest, earlier, base, other].map(({ logprobs }) => JSON.stringify(logprobs))
        assert.strictEqual(new Set(all).size, 4)
      }),
    ))

  it("shares the engine of a folder that is opened twice", () =>
    provided(
      Effect.gen(function* () {
        const { open } = yield* Decoders
        const folder = join(trainer, "run_a")
        assert.strictEqual(yield* open(folder), yield* open(join(folder, "broadcast/step_3")))
      }),
    ))

  it("says what is wrong with a folder", () =>
    provided(
      Effect.gen(function* () {
        const of = (model: string) =>
          Effect.map(
            Effect.flip(Lms.open(LmConfig.make({ model }), { source: "a.yaml", baseDir: trainer })),
            (error) => [error._tag, error.message],
          )
        assert.deepStrictEqual(yield* of("decoder:"), [
          "ConfigError",
          'a.yaml: model: "decoder:": expected decoder:FOLDER, found no folder',
        ])
        const [, missing] = yield* of("decoder:nowhere")
        assert.include(missing, `"decoder:nowhere": there is no folder ${join(trainer, "nowhere")} or `)
        const [tag, several] = yield* of("decoder:.")
        assert.strictEqual(tag, "ConfigError")
        assert.include(several, "it has several runs; name one of them")
        const [, near] = yield* of("decodr:x")
        assert.include(near, 'did you mean "decoder:x"?')
      }),
    ))

  it("needs the service Decoders", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const error = yield* Effect.flip(Lms.open(LmConfig.make({ model: `decoder:${trainer}` })))
        assert.include(error.message, "a model in this process needs the Layer decoders of effect-rl/node")
      }).pipe(Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer))),
    ))
})

describe("findModel", () => {
  it("finds the weights of a step", () =>
    provided(
      Effect.gen(function* () {
        const run = join(trainer, "run_a")
        const place = { name: "run_a", step: 2 }
        assert.deepStrictEqual(yield* findModel(run, 2), {
          ...place,
          holds: "checkpoint",
          folder: join(run, "checkpoints/step_2"),
        })
        assert.deepStrictEqual(yield* findModel(run), {
          ...place,
          step: 3,
          holds: "adapter",
          folder: join(run, "broadcast/step_3"),
        })
        assert.strictEqual(yield* messageOf(run, 7), `${run}: it has no weights of step 7; expected one of 2, 3`)
        const base = join(trainer, "base")
        assert.strictEqual(
          yield* messageOf(base, 7),
          `${base}: expected a run, to take its weights of step 7; found other files`,
        )
      }),
    ))

  it("says which file is missing or wrong", () =>
    provided(
      Effect.gen(function* () {
        const folder = join(trainer, "wrong")
        mkdirSync(folder)
        assert.match(yield* messageOf(folder), /wrong: expected config\.json of a model, adapter_config\.json of an/)
        writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ base_model_name_or_path: "gone" }))
        assert.strictEqual(
          yield* messageOf(folder),
          `${join(folder, "adapter_config.json")}: its base model is gone, which is no folder here`,
        )
        const adapter = { peft_type: "LORA", r: 2, lora_alpha: 8, target_modules: ["q_proj", "v_proj"] }
        const base = { base_model_name_or_path: join(trainer, "base") }
        writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ ...adapter, ...base }))
        const weights = join(folder, "adapter_model.safetensors")
        assert.include(yield* messageOf(folder), `${weights}: `)
        copyFileSync(join(trainer, "run_a/broadcast/step_3/adapter_model.safetensors"), weights)
        assert.match(
          yield* messageOf(folder),
          /wrong\/adapter_model\.safetensors: .*lora_A.* expected the shape \[2, 16\], found \[1, 16\]/,
        )
        rmSync(join(folder, "adapter_config.json"))
        writeFileSync(join(folder, "config.json"), JSON.stringify({ architectures: ["GPT2LMHeadModel"] }))
        assert.match(yield* messageOf(folder), /wrong\/config\.json: /)
        rmSync(folder, { recursive: true })
        // An adapter with a base model that has moved: the trainer's folder has a copy of a model from scratch.
        const moved = join(trainer, "run_b/broadcast/step_3/adapter_config.json")
        writeFileSync(
          moved,
          JSON.stringify({ peft_type: "LORA", r: 1, lora_alpha: 8, target_modules: ["q_proj", "v_proj"] }),
        )
        const opened = yield* Effect.flatMap(findModel(join(trainer, "run_b")), openModel)
        assert.strictEqual(opened.base.name, join(trainer, "base"))
        assert.strictEqual(opened.adapter?.alpha, 8)
      }),
    ))
})
