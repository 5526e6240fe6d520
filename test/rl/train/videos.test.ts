import { assert, describe, it } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { GifReader } from "omggif"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import type { RenderOptions } from "../../../src/rl/train/Settings.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { layer as videos } from "../../../src/rl/train/validation/videos-node.ts"
import { VideoEncoder } from "../../../src/rl/train/validation/videos.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { resumable } from "./resumable.ts"

const settings = (render: RenderOptions) => ({
  env: CartPole.env,
  numEnvs: 4,
  algorithm: Ppo.make({ hidden: [8], nsteps: 32, epochs: 1 }),
  totalSteps: 512,
  render: { size: 60, ...render },
})

/** Runs a training, and returns its files in steps/ by their paths. */
const rendered = Effect.fnUntraced(function* (render: RenderOptions) {
  const store = RunStore.memory()
  const layers = Layer.mergeAll(Wasm.layer, store.layer, Recorder.layerSilent)
  yield* Train.run(settings(render)).pipe(Effect.provide(layers))
  return new Map(
    [...store.files].flatMap(([path, bytes]) => {
      const from = path.indexOf("/steps/")
      return from < 0 ? [] : [[path.slice(from + 1), bytes] as const]
    }),
  )
})

const node = Layer.provide(videos, Layer.merge(NodeFileSystem.layer, NodePath.layer))

const videosIn = (files: ReadonlyMap<string, Uint8Array>) =>
  [...files.keys()].filter((path) => /\.(gif|mp4)$/.test(path)).toSorted()

describe("videos of a training", () => {
  it.effect("show every so many episodes, without validations, in one picture with tiles", () =>
    Effect.gen(function* () {
      const files = yield* rendered({ everyEpisodes: 6, episodes: 3, video: "gif", maxFrames: 6 })
      const names = videosIn(files)
      assert.isAbove(names.length, 1)
      for (const path of names) {
        assert.match(path, /^steps\/\d+\/episode\.gif$/)
        const reader = new GifReader(Buffer.from(files.get(path) ?? []))
        // Two columns and two rows of tiles of 30 × 20 pixels.
        assert.deepStrictEqual([reader.width, reader.height], [60, 40])
        assert.isAtMost(reader.numFrames(), 6)
      }
      assert.deepStrictEqual(yield* rendered({ everyEpisodes: 6, episodes: 3, video: "gif", maxFrames: 6 }), files)
    }).pipe(Effect.provide(node)),
  )

  it.effect("are refused of more episodes than fit into memory", () =>
    Effect.gen(function* () {
      const many = yield* Effect.flip(rendered({ everyEpisodes: 5, episodes: 101, video: "gif" }))
      assert.match(many.message, /render\.episodes: expected at most 100 episodes with a video.*found 101/)
    }).pipe(Effect.provide(node)),
  )

  it.effect("are files of their own on request, and MP4s by the encoder", () =>
    Effect.gen(function* () {
      const movies: Array<number> = []
      const files = yield* rendered({ everyEpisodes: 15, episodes: 2, video: "mp4", tiled: false, speed: 10 }).pipe(
        Effect.provideService(VideoEncoder, {
          check: () => Effect.void,
          encode: (format, { frames, speed }) => {
            assert.strictEqual(format, "mp4")
            movies.push(frames.length)
            return Effect.succeed(Uint8Array.of(speed))
          },
        }),
      )
      const names = videosIn(files)
      assert.strictEqual(names.length, movies.length)
      assert.match(names[0], /^steps\/\d+\/episode\.mp4$/)
      assert.match(names[1], /^steps\/\d+\/episode_1\.mp4$/)
      assert.deepStrictEqual(files.get(names[0]), Uint8Array.of(10))
      const missing = yield* Effect.flip(rendered({ everyEpisodes: 15, video: "mp4" }))
      assert.include(missing.message, "render.video: videos need the Layers of effect-rl/node")
    }),
  )

  it.effect("are the same after a resume, and change nothing else", () =>
    Effect.gen(function* () {
      const plain = yield* resumable(settings({}), 256)
      const { whole, resumed } = yield* resumable(
        settings({ everyEpisodes: 7, episodes: 2, video: "gif", maxFrames: 6 }),
        256,
      )
      assert.deepStrictEqual([whole.digest, resumed.digest], [plain.whole.digest, plain.whole.digest])
    }).pipe(Effect.provide(node)),
  )
})
