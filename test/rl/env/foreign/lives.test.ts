import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import type { AsyncBatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import * as EpisodeLog from "../../../../src/rl/env/EpisodeLog.ts"
import { foreignEnv } from "../../../../src/rl/env/foreign/foreignEnv.ts"
import { decodeDescription } from "../../../../src/rl/env/foreign/protocol.ts"
import { type Connect, status } from "../../../../src/spread/programs/Connection.ts"
import { envError } from "../errors.ts"

const text = (more: object = {}): string =>
  JSON.stringify({
    protocol: 1,
    observationSpace: { type: "Box", shape: [1], low: 0, high: 255 },
    actionSpace: { type: "Discrete", n: 2 },
    observationType: "uint8",
    maxSteps: null,
    hasScores: true,
    ...more,
  })

/**
 * A program of one game whose life ends at each second step, and which is over after two lives. Each step has the reward 1
 * and the score 5. The observation is the number of steps in the game, plus 100 for each 1 among its actions.
 */
const program = (starts: Array<number>): Connect => {
  let seen = 0
  const exchange = (request: Uint8Array): Uint8Array => {
    const view = new DataView(request.buffer)
    const [seed, action, asked] = [view.getUint32(8, true), view.getInt32(12, true), request[16]]
    let [terminated, final] = [0, -1]
    if (asked === 1) {
      seen += 1 + 100 * action
      const life = seen % 100
      if (life % 2 === 0) {
        terminated = life === 4 ? 1 : 2
        final = seen
      }
    }
    if (asked === 3 || terminated === 1) {
      starts.push(seed)
      seen = 0
    }
    const finals = final < 0 ? [] : [final]
    const stepped = asked === 1 ? 1 : 0
    const [reward, score] = [Float32Array.of(stepped), Float32Array.of(5 * stepped)].map(({ buffer }) => [
      ...new Uint8Array(buffer),
    ])
    return Uint8Array.from([...reward, seen, ...finals, terminated, 0, ...score])
  }
  return () =>
    Effect.succeed({
      send: (request, _, done) =>
        done({
          status: status.done,
          body: new DataView(request.buffer).getUint32(4, true) === 0 ? utf8.encode(text()) : exchange(request),
        }),
    })
}

const described = (connect: Connect, more: object = {}) =>
  foreignEnv(
    { id: "Lives-v0", name: "Lives-v0", options: {}, processes: 1 },
    Result.getOrThrow(decodeDescription(text(more))),
    connect,
  )

const opened = (starts: Array<number>) =>
  Effect.map(Batch.open(described(program(starts)), 1), (batch) =>
    EpisodeLog.record(batch.isAsync === true ? batch : assert.fail("expected a batch that steps elsewhere")),
  )

const played = Effect.fnUntraced(function* (batch: AsyncBatchEnv, steps: number) {
  const rows: Array<ReadonlyArray<number | undefined>> = []
  for (let step = 0; step < steps; step++) {
    yield* batch.step(Int32Array.of(0))
    const { observations, finalObservations, rewards, terminated, livesLost } = batch
    rows.push([observations[0], rewards[0], terminated[0], livesLost?.[0], finalObservations[0]])
  }
  return rows
})

describe("a game with lives", () => {
  it.effect("ends the agent's episode with each life, and is recorded as one episode with its own scores", () =>
    Effect.gen(function* () {
      const starts: Array<number> = []
      const batch = yield* opened(starts)
      yield* batch.reset(1)
      assert.deepStrictEqual(yield* played(batch, 5), [
        [1, 1, 0, 0, 0],
        [2, 1, 1, 1, 2],
        [3, 1, 0, 0, 2],
        [0, 1, 1, 0, 4],
        [1, 1, 0, 0, 4],
      ])
      const { length, returns, lengths, steps } = batch.episodes
      assert.deepStrictEqual([length, returns[0], lengths[0], steps[0]], [1, 20, 4, 4])
      assert.lengthOf(new Set(starts), 2)
    }).pipe(Effect.scoped),
  )

  it.effect("goes on after a restore in its second life", () =>
    Effect.gen(function* () {
      const batch = yield* opened([])
      yield* batch.reset(1)
      yield* batch.step(Int32Array.of(1))
      yield* played(batch, 2)
      const saved = batch.snapshot()
      const expected = yield* played(batch, 3)
      assert.strictEqual(expected[0][2], 1)

      const starts: Array<number> = []
      const resumed = yield* opened(starts)
      yield* resumed.restore(saved)
      assert.lengthOf(starts, 1)
      assert.deepStrictEqual(yield* played(resumed, 3), expected)
      assert.deepStrictEqual([resumed.episodes.length, resumed.episodes.returns[0]], [1, 20])
    }).pipe(Effect.scoped),
  )

  it("has one agent", () => {
    const { message } = envError(() => described(program([]), { agents: ["left", "right"] }))
    assert.strictEqual(
      message,
      "Lives-v0: its program describes a game of several agents with scores; expected one or the other",
    )
  })
})
