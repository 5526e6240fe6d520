/**
 * Measures eight clients that learn by rewards on Tinker servers over one base model of ten million weights: all at one server,
 * whose engine and gradients have a thread each, and each at a server of its own, eight at the same time. A step saves the weights,
 * samples four answers of at most 24 tokens to each of two prompts of 20, computes their gradient, and updates. Tokens are those of
 * the trained samples, while all clients are at work. One server and eight servers are measured in turn, three times each, and the
 * bench reports the pair with the median ratio.
 *
 * Memory is the sum of the most that each process has held at any time. Set `EFFECT_RL_BENCH_BACKEND` to measure another backend
 * than `auto`, and `EFFECT_RL_BENCH_STEPS` for longer measurements.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { LmDirectory, MultiRun } from "effect-rl"
import { platform } from "effect-rl/node"
import { onDisk } from "../../src/run/store/FileTree.ts"
import { openBaseModel } from "../../src/trainer/baseModel.ts"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"
import { measureServers, type ServersLoad } from "../tinkerClients.ts"

const clients = 8
const pairs = 3
const answer = 24
const decode = Schema.decodeUnknownSync(MultiRun.MultiRunConfig)

const saveModel = (path: string) =>
  Effect.gen(function* () {
    const tokenizer = { alphabet: "abcdefghijklmnopqrstuvwxyz: " }
    const sizes = { hiddenSize: 320, intermediateSize: 864, layers: 8, heads: 5, maxPositions: 128 }
    const { model } = decode({ kind: "multirun", model: { type: "scratch", ...sizes, tokenizer }, runs: {} })
    yield* LmDirectory.save(yield* onDisk(path), "model", yield* openBaseModel(model, { baseDir: ".", seed: 1 }))
  }).pipe(Effect.provide(platform), Effect.runPromise)

interface Pair {
  readonly one: ServersLoad
  readonly eight: ServersLoad
}

const timesOf = ({ one, eight }: Pair): number => one.trainedASecond / eight.trainedASecond
const megabytes = (bytes: number): number => bytes / 1e6

export default defineBench({
  name: "eight-clients",
  unit: "times",
  higherIsBetter: true,
  about: "Tokens a second of eight clients at one Tinker server against eight servers at once with one client each",
  run: async () => {
    const { folder, remove } = temporaryFolder()
    try {
      await saveModel(folder)
      let measurements = 0
      const measure = (servers: number): Promise<ServersLoad> => {
        const own = join(folder, `measurement-${measurements++}`)
        mkdirSync(own)
        return measureServers({
          model: join(folder, "model"),
          folder: own,
          backend: process.env["EFFECT_RL_BENCH_BACKEND"] ?? "auto",
          servers,
          clients: clients / servers,
          warmUp: 2,
          steps: Number(process.env["EFFECT_RL_BENCH_STEPS"] ?? 6),
          answer,
        })
      }
      const all: Array<Pair> = []
      for (let pair = 0; pair < pairs; pair++) all.push({ one: await measure(1), eight: await measure(clients) })
      const sorted = all.toSorted((a, b) => timesOf(a) - timesOf(b))
      const { one, eight } = sorted[Math.floor(pairs / 2)]
      return {
        value: timesOf({ one, eight }),
        details: {
          "least and most times": sorted.map((pair) => timesOf(pair).toFixed(2)).join(", "),
          "one server, tokens/s": one.trainedASecond,
          "eight servers, tokens/s": eight.trainedASecond,
          "one server, tokens/s of a core": one.trainedACoreSecond,
          "eight servers, tokens/s of a core": eight.trainedACoreSecond,
          "one server, MB": megabytes(one.residentBytes),
          "eight servers, MB": megabytes(eight.residentBytes),
          "share of the memory": one.residentBytes / eight.residentBytes,
          "share of the memory by PSS": one.proportionalBytes / eight.proportionalBytes,
          "one server, s": one.seconds,
          "eight servers, s": eight.seconds,
        },
      }
    } finally {
      remove()
    }
  },
})
