import { assert, describe, it } from "@effect/vitest"
import { arraysOf } from "../../../../src/rl/learner/Batch.ts"
import { makeSequenceMemory, replayColumns } from "../../../../src/rl/learner/unreal/SequenceMemory.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

const steps = 4

/** A rollout of one env whose step t has the observation t and the reward t, and ends as `ends` says. */
const remembered = (ends: string, sequences: number) => {
  const memory = makeSequenceMemory({ numEnvs: 1, observationSize: 1, capacity: ends.length, sequences, steps })
  const numbers = Float32Array.from(ends, (_, t) => t)
  const marks = (mark: string): Uint8Array => Uint8Array.from(ends, (end) => (mark.includes(end) ? 1 : 0))
  memory.remember({
    steps: ends.length,
    columns: {
      observations: numbers,
      actions: new Int32Array(ends.length),
      values: numbers,
      advantages: numbers,
      targets: numbers,
    },
    rewards: numbers,
    terminated: marks("TB"),
    truncated: marks("cB"),
  })
  return memory
}

const drawn = (ends: string, draws: number) => {
  const memory = remembered(ends, draws)
  const into = arraysOf(replayColumns(draws, steps, 1), 1)
  memory.drawSequences(stream(1), into)
  return Array.from({ length: draws }, (_, sequence) => {
    const part = (column: Float32Array, each: number) => [...column.subarray(sequence * each, (sequence + 1) * each)]
    return {
      first: into.replayObservations[sequence * (steps + 1)],
      continues: part(into.replayContinues, steps),
      known: part(into.replayKnown, steps),
      fresh: part(into.replayFresh, steps + 1),
    }
  })
}

describe("a sequence that is replayed", () => {
  it("has known returns where the episode continues or terminated, not where it was truncated", () => {
    // T: terminal, c: cut off, B: both, which counts as terminal.
    const ends = "...T..c..B..."
    const sequences = drawn(ends, 60)
    assert.isAbove(new Set(sequences.map(({ first }) => first)).size, 6)
    for (const { first, continues, known, fresh } of sequences) {
      for (let step = 0; step < steps; step++) {
        const following = ends.slice(first + step, first + steps)
        const end = /[TcB]/.exec(following)?.[0]
        assert.strictEqual(known[step], end === "c" ? 0 : 1, `${ends} from ${first}, step ${step}`)
        assert.strictEqual(continues[step], ends[first + step] === "." ? 1 : 0)
        assert.strictEqual(fresh[step + 1], 1 - continues[step])
      }
      assert.strictEqual(fresh[0], 1)
    }
  })
})
