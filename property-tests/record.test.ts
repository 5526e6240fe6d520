import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { RunStore } from "../src/run/store/RunStore.ts"
import { ByteWriter } from "../src/base/formats/ByteWriter.ts"
import { Recorder } from "../src/run/record/Recorder.ts"
import type { EpisodeEnded, RunStarted } from "../src/run/record/RunEvent.ts"
import { scores } from "../src/run/record/scores.ts"
import { decode, writeHeader, writeScalars } from "../src/base/formats/tfevents.ts"

const episode: fc.Arbitrary<EpisodeEnded> = fc.record({
  _tag: fc.constant("EpisodeEnded"),
  step: fc.maxSafeNat(),
  episode: fc.nat(),
  env: fc.nat(),
  return: fc.double(),
  length: fc.nat(),
  terminated: fc.boolean(),
  truncated: fc.boolean(),
  truncationReason: fc.constantFrom(null, "env", "max_steps"),
})

interface Scalars {
  readonly wallSeconds: number
  readonly step: number
  readonly scalars: Readonly<Record<string, number>>
}

const scalars: fc.Arbitrary<Scalars> = fc.record({
  wallSeconds: fc.double({ min: 0, max: 1e12, noNaN: true }),
  step: fc.maxSafeNat(),
  scalars: fc.dictionary(
    fc.string({ unit: "grapheme" }).filter((tag) => tag !== "__proto__"),
    fc.float(),
    { maxKeys: 5, noNullPrototype: true },
  ),
})

describe("scores", () => {
  it("are lines of JSON that say what the events said, in their order, whatever the env is called", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.array(episode)), fc.string({ unit: "binary" }), async (batches, env) => {
        const { layer, files } = RunStore.memory()
        const about: RunStarted = {
          _tag: "RunStarted",
          name: "law",
          env,
          algorithm: "none",
          devices: {},
          seed: 1,
          totalSteps: 1,
          numEnvs: 1,
          resumedFromStep: null,
          config: {},
        }
        const recording = Effect.gen(function* () {
          const run = yield* (yield* RunStore).open({ name: "law", population: {}, seed: 1 })
          const { emit } = yield* (yield* Recorder).start(run, about)
          yield* Effect.forEach(batches, emit)
        })
        await Effect.runPromise(
          Effect.scoped(recording).pipe(Effect.provide(Recorder.layer(scores)), Effect.provide(layer)),
        )
        const [bytes = new Uint8Array(0)] = files.values()
        const lines = new TextDecoder().decode(bytes).split("\n").slice(0, -1)
        const json = (value: number) => JSON.parse(JSON.stringify(value))
        assert.deepEqual(
          lines.map((line) => ({ ...JSON.parse(line), timestamp: null })),
          batches.flat().map((event) => ({
            timestamp: null,
            mode: "train",
            episode_index: event.episode,
            step_index: event.step,
            score: json(event.return),
            episode_cum_score: json(event.return),
            env_id: env.toWellFormed(),
            env_type: env.toWellFormed(),
            env_index: event.env,
            episode_length: event.length,
            terminated: event.terminated,
            truncated: event.truncated,
            truncation_reason: event.truncationReason,
          })),
        )
      }),
    ))

  it("write every number as JSON does", () => {
    const to = new ByteWriter()
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger()), (value) => {
        to.clear()
        to.json(value)
        assert.strictEqual(new TextDecoder().decode(to.written), JSON.stringify(value))
      }),
    )
  })
})

describe("event files", () => {
  const file = (events: ReadonlyArray<Scalars>): Uint8Array => {
    const to = new ByteWriter()
    writeHeader(to, 0)
    for (const event of events) writeScalars(to, event.wallSeconds, event.step, event.scalars)
    return to.written.slice()
  }

  it("give back every event", () => {
    fc.assert(
      fc.property(fc.array(scalars), (events) => {
        const bytes = file(events)
        const decoded = decode(bytes)
        assert.strictEqual(decoded.intactBytes, bytes.length)
        assert.deepEqual(decoded.events.slice(1), events)
      }),
    )
  })

  it("that are cut off anywhere give back the events before", () => {
    fc.assert(
      fc.property(fc.array(scalars), fc.nat(), (events, at) => {
        const bytes = file(events)
        const { events: found, intactBytes } = decode(bytes.subarray(0, at % bytes.length))
        assert.deepEqual(found, decode(bytes).events.slice(0, found.length))
        assert.isAtMost(intactBytes, at % bytes.length)
      }),
    )
  })
})
