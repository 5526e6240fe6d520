import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path } from "effect"
import { readRollouts, rolloutsState, writeRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import type { RoutedExperts } from "../../../src/base/formats/routedExperts.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import { sha256 } from "../../../src/base/text/sha256.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import type { RunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { brokenDisk } from "../../run/store/brokenDisk.ts"
import { disk } from "../../run/store/disk.ts"
import { filesBelow, reopen, temporaryRunFolder } from "../folders.ts"
import { isGone } from "../../../src/trainer/TrainerError.ts"

const samples: ReadonlyArray<TrainingSample> = [
  {
    id: "turn-1",
    tokens: Int32Array.of(5, 6, 7),
    mask: Uint8Array.of(0, 1, 1),
    logprobs: Float32Array.of(0, -0.5, -1.5),
    advantages: Float32Array.of(0, 1, 1),
    temperature: 0.7,
    group: 2,
  },
  {
    id: "turn-2",
    tokens: Int32Array.of(1),
    mask: Uint8Array.of(0),
    logprobs: Float32Array.of(0),
    advantages: Float32Array.of(0),
    temperature: 1,
  },
]

const withFolder = <E>(body: (folder: RunFolder) => Effect.Effect<void, E, FileSystem.FileSystem | Path.Path>) =>
  Effect.flatMap(temporaryRunFolder, body).pipe(Effect.provide(disk))

const edit = (folder: RunFolder, file: string, change: (bytes: Uint8Array) => Uint8Array) =>
  Effect.gen(function* () {
    const path = `rollouts/step_3/${file}`
    yield* folder.tree.write(path, change(yield* folder.tree.read(path)))
  })

/** Replaces the arrays by others, with a right digest, as another program could write them. */
const withArrays = (folder: RunFolder, change: (tensors: Safetensors.TensorEntries) => Safetensors.TensorEntries) =>
  Effect.gen(function* () {
    const { tree } = folder
    const bytes = Safetensors.encode(
      change(Safetensors.decode(yield* tree.read("rollouts/step_3/samples.safetensors"))),
    )
    yield* tree.write("rollouts/step_3/samples.safetensors", bytes)
    const digest = yield* sha256(bytes)
    const description = JSON.parse(yield* tree.readText("rollouts/step_3/batch.json"))
    yield* tree.write("rollouts/step_3/batch.json", JSON.stringify({ ...description, sha256: digest }))
  })

describe("the files of a step's samples", () => {
  it.effect("come back as they were", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        yield* writeRollouts(folder, { step: 3, samples })
        assert.deepEqual(yield* readRollouts(folder, 3), { step: 3, samples })
        assert.deepEqual(yield* filesBelow(`${folder.directory}/rollouts`), [
          "step_3",
          "step_3/STABLE",
          "step_3/batch.json",
          "step_3/samples.safetensors",
        ])
      }),
    ),
  )

  it.effect("come back with the experts of their tokens, of 8 or 16 bits", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const [first, second] = samples
        const ofTokens = (ids: RoutedExperts["ids"]) => ({ layers: 1, perToken: 2, ids })
        for (const [step, ids] of [Uint8Array.of(1, 0, 5, 255), Uint16Array.of(1, 0, 5, 256)].entries()) {
          const recorded = [{ ...second }, { ...first, routedExperts: ofTokens(ids) }]
          yield* writeRollouts(folder, { step, samples: recorded })
          assert.deepEqual(yield* readRollouts(folder, step), { step, samples: recorded })
        }
        const other = { layers: 2, perToken: 1, ids: Uint8Array.of(1, 0) }
        const mixed = [
          { ...first, routedExperts: ofTokens(Uint8Array.of(1, 0)) },
          { ...second, routedExperts: other },
        ]
        const { message } = yield* Effect.flip(writeRollouts(folder, { step: 2, samples: mixed }))
        assert.include(
          message,
          "sample turn-2: routed_experts: expected 2 experts in each of 1 layers as in other samples, found 1 experts in each of 2 layers",
        )
      }),
    ),
  )

  it.effect("are waited for until STABLE is there, and missed if a later step is complete", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* rolloutsState(folder, 3), "waiting")
        yield* writeRollouts(folder, { step: 3, samples })
        assert.strictEqual(yield* rolloutsState(folder, 3), "ready")
        yield* folder.tree.remove("rollouts/step_3/STABLE")
        assert.strictEqual(yield* rolloutsState(folder, 3), "waiting")
        assert.strictEqual(yield* rolloutsState(folder, 2), "waiting")
        yield* writeRollouts(folder, { step: 4, samples })
        const error = yield* Effect.flip(rolloutsState(folder, 3))
        assert.strictEqual(
          error.message,
          `${folder.directory}/rollouts/step_3: expected this step's samples, found those of step 4 only`,
        )
      }),
    ),
  )

  it.effect("can be written again only if they are the same", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        yield* writeRollouts(folder, { step: 3, samples })
        yield* writeRollouts(folder, { step: 3, samples })
        const error = yield* Effect.flip(writeRollouts(folder, { step: 3, samples: samples.slice(1) }))
        assert.include(error.message, "found others for the same step")
        assert.deepEqual((yield* readRollouts(folder, 3)).samples, samples)
      }),
    ),
  )

  it.effect("are not written if they could not be read", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const messages: Array<string> = []
        for (const bad of [[], [{ ...samples[0], logprobs: new Float32Array(2) }]]) {
          messages.push((yield* Effect.flip(writeRollouts(folder, { step: 3, samples: bad }))).message)
        }
        const path = `${folder.directory}/rollouts/step_3`
        assert.deepEqual(messages, [
          `${path}: expected at least one sample, found none`,
          `${path}: sample turn-1: logprobs: expected 3 numbers, found 2`,
        ])
        assert.deepEqual(yield* filesBelow(folder.directory), [])
      }),
    ),
  )

  const damages: Readonly<Record<string, (folder: RunFolder) => Effect.Effect<void, { readonly message: string }>>> = {
    "samples.safetensors: the file is missing": ({ tree }) => tree.remove("rollouts/step_3/samples.safetensors"),
    "batch.json: the file is missing": ({ tree }) => tree.remove("rollouts/step_3/batch.json"),
    "batch.json: expected a description of samples": (folder) => edit(folder, "batch.json", (bytes) => bytes.slice(9)),
    "batch.json: expected the samples of step 3, found step 4": (folder) =>
      edit(folder, "batch.json", (bytes) =>
        new TextEncoder().encode(new TextDecoder().decode(bytes).replace('"step": 3', '"step": 4')),
      ),
    "samples.safetensors: the content differs from the digest in batch.json": (folder) =>
      edit(folder, "samples.safetensors", (bytes) =>
        bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte)),
      ),
    'samples.safetensors: expected an array "mask"': (folder) => withArrays(folder, ({ tokens }) => ({ tokens })),
    "samples.safetensors: tokens: expected I32": (folder) =>
      withArrays(folder, (all) => ({ ...all, tokens: { shape: [4], data: new Float32Array(4) } })),
    "samples.safetensors: mask: expected 4 numbers, found 5": (folder) =>
      withArrays(folder, (all) => ({ ...all, mask: { shape: [5], data: new Uint8Array(5) } })),
    "samples.safetensors: routed_experts: expected U8 or U16": (folder) =>
      withArrays(folder, (all) => ({ ...all, routed_experts: { shape: [1, 1, 1], data: new Float32Array(1) } })),
    "samples.safetensors: routed_experts: expected a shape [tokens, layers, experts of a token], found [4]": (folder) =>
      withArrays(folder, (all) => ({ ...all, routed_experts: { shape: [4], data: new Uint8Array(4) } })),
    "samples.safetensors: routed_tokens: expected 2 numbers of I32 from 0, one for each sample": (folder) =>
      withArrays(folder, (all) => ({ ...all, routed_experts: { shape: [2, 1, 1], data: new Uint8Array(2) } })),
    "samples.safetensors: routed_tokens: expected a sum of 2, the tokens of routed_experts, found 4": (folder) =>
      withArrays(folder, (all) => ({
        ...all,
        routed_experts: { shape: [2, 1, 1], data: new Uint8Array(2) },
        routed_tokens: { shape: [2], data: Int32Array.of(1, 3) },
      })),
    "samples.safetensors: offsets: expected ascending numbers from 0 to 4": (folder) =>
      withArrays(folder, (all) => ({ ...all, offsets: { shape: [3], data: Int32Array.of(0, 5, 4) } })),
  }
  for (const [problem, damage] of Object.entries(damages)) {
    it.effect(`that are damaged give an error: ${problem}`, () =>
      withFolder((folder) =>
        Effect.gen(function* () {
          yield* writeRollouts(folder, { step: 3, samples })
          yield* damage(folder)
          const error = yield* Effect.flip(readRollouts(folder, 3))
          assert.strictEqual(error._tag, "TrainerError")
          assert.isTrue(error.message.startsWith(`${folder.directory}/rollouts/step_3: ${problem}`), error.message)
        }),
      ),
    )
  }

  it.effect("are complete or not there, at whichever change the disk breaks", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        let at = 0
        for (let isWritten = false; !isWritten;) {
          at++
          yield* fs.remove(`${folder.directory}/rollouts`, { recursive: true, force: true })
          const { layer } = brokenDisk({ at, code: "ENOSPC" })
          const broken = yield* reopen(folder).pipe(Effect.provide(Layer.merge(layer, Path.layer)))
          const result = yield* Effect.result(writeRollouts(broken, { step: 3, samples }))
          isWritten = result._tag === "Success"
          if (result._tag === "Failure") assert.include(result.failure.message, "no space left on device")
          const state = yield* rolloutsState(folder, 3)
          if (isWritten) assert.strictEqual(state, "ready")
          if (state === "ready") assert.deepEqual((yield* readRollouts(folder, 3)).samples, samples)
          // The orchestrator that was started again hands the samples over.
          yield* writeRollouts(folder, { step: 3, samples })
          assert.deepEqual((yield* readRollouts(folder, 3)).samples, samples)
          assert.deepEqual(yield* folder.tree.list("rollouts"), ["step_3"], `broken at change ${at}`)
        }
        assert.isAtLeast(at, 10)
      }),
    ),
  )

  it.effect("do not bring back a run's folder that was deleted, nor go into another run's", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        yield* fs.rename(folder.directory, `${folder.directory}.gone`)
        const message = `${folder.directory}: expected the folder of run_a, which was deleted or replaced`
        const error = yield* Effect.flip(writeRollouts(folder, { step: 3, samples }))
        assert.isTrue(isGone(error))
        assert.strictEqual(error.message, message)
        assert.isFalse(yield* fs.exists(folder.directory))
        yield* fs.makeDirectory(`${folder.directory}/rollouts`, { recursive: true })
        const again = yield* Effect.flip(writeRollouts(folder, { step: 3, samples }))
        assert.isTrue(isGone(again))
        assert.strictEqual(again.message, message)
        assert.deepEqual(yield* filesBelow(folder.directory), ["rollouts"])
      }),
    ),
  )
})
