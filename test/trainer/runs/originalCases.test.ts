// The cases of prime-rl's tests of its runs and of its packer (`test_runs` and `test_packer`), in our terms. Where a packer of
// theirs holds images, samples of ours hold tokens only.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { makePacker } from "../../../src/trainer/batches/Packer.ts"
import { problemOf, type TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import type { World } from "../ranks.ts"
import { check } from "./checkRuns.ts"

/** A config in prime-rl's keys, with tasks of ours. */
const orch = (batchSize: string, more = "") =>
  `batch_size = ${batchSize}\ngroup_size = 4\n${more}\n[model]\nname = "test-model"\n[[train.source]]\nname = "test-env"\n[train_dataset]\ntype = "reverse_text"`

const add = ({ files }: World, ...ids: ReadonlyArray<string>): void => {
  for (const id of ids) files.add(id, orch("32"))
}

describe("the runs of the original's tests", () => {
  check(
    "are none at first, are found with an index each, and give their index back when they are deleted",
    (world) =>
      Effect.gen(function* () {
        const { files, turn, master } = world
        assert.strictEqual(master.maxRuns, 5)
        assert.deepStrictEqual([master.usedIndices(), master.unusedIndices()], [[], [0, 1, 2, 3, 4]])
        assert.deepStrictEqual(master.slots(), [])
        add(world, "run_abc123", "run_def456")
        for (const other of ["other_dir/x", "random/x", "run_noconfig/x"]) files.write(other, "")
        yield* turn
        assert.deepStrictEqual(
          [master.usedIndices(), master.unusedIndices()],
          [
            [0, 1],
            [2, 3, 4],
          ],
        )
        for (const id of ["run_abc123", "run_def456"])
          assert.strictEqual(master.indexToId(master.idToIndex(id) ?? -1), id, "the two maps are inverse")
        assert.deepStrictEqual(
          master.slots().map(({ directory }) => directory),
          [files.at("run_abc123"), files.at("run_def456")],
        )
        const first = master.idToIndex("run_abc123") ?? -1
        files.remove("run_abc123")
        yield* turn
        assert.deepStrictEqual([master.usedIndices(), master.unusedIndices()], [[1], [0, 2, 3, 4]])
        assert.isUndefined(master.idToIndex("run_abc123"))
        assert.isUndefined(master.config(first), "the config of a deleted run is gone")
      }),
    1,
    5,
  )

  check("are at most as many as fit; a waiting one takes the place of one that is deleted", (world) =>
    Effect.gen(function* () {
      const { files, turn, ids, master } = world
      add(world, "run_001", "run_002", "run_003")
      yield* turn
      assert.strictEqual(ids(), "run_001 run_002")
      assert.deepStrictEqual(master.unusedIndices(), [])
      files.remove("run_001")
      yield* turn
      assert.strictEqual(ids(), "run_003 run_002")
      assert.deepStrictEqual(master.unusedIndices(), [])
    }),
  )

  check(
    "have the config of their file; a missing one is waited for, a wrong one is explained, an evicted run is left out",
    (world) =>
      Effect.gen(function* () {
        const { files, turn, ids, master } = world
        files.add("run_test123", orch("32", "max_steps = 1000"))
        files.add("run_invalid", orch('"not-a-number"'))
        files.write("run_noconfig/notes.txt", "")
        add(world, "run_evicted")
        files.write("run_evicted/control/evicted.txt", "Previously evicted")
        yield* turn
        assert.strictEqual(ids(), "run_test123 - - - -")
        assert.deepInclude(master.config(0), { maxSteps: 1000 })
        assert.deepInclude(master.config(0)?.batch, { size: 32, groupSize: 4 })
        assert.match(
          files.text("run_invalid/configs/config_validation_error.txt") ?? "",
          /orch\.toml:1: batch\.size: expected .*, found "not-a-number"/,
        )
        yield* master.evict(0, "Test eviction reason")
        yield* turn
        assert.strictEqual(files.text("run_test123/control/evicted.txt"), "Test eviction reason\n")
        assert.strictEqual(ids(), "- - - - -")
      }),
    1,
    5,
  )
})

const sample = (id: string, length: number): TrainingSample => ({
  id,
  tokens: Int32Array.from({ length }, (_, at) => at + 1),
  mask: Uint8Array.from({ length }, (_, at) => Math.min(1, at)),
  logprobs: Float32Array.from({ length }, (_, at) => -at / 10),
  advantages: Float32Array.from({ length }, (_, at) => Math.min(1, at)),
  temperature: 1,
})

const packing = { rows: 1, block: 1, mixing: "one-run" } as const
const rulesAt = () => ({ normalisation: { type: "token_mean" } }) as const

describe("the packer of the original's tests", () => {
  it("packs the samples of a step of a run, and counts its step once", () => {
    const packer = makePacker({ ...packing, width: 4, maxRuns: 1, ranks: 1 })
    packer.open(0, { id: "run_test123", step: 1, rulesAt })
    packer.offer(0, { step: 1, samples: [sample("a", 2), sample("b", 2)] })
    const pack = packer.pack()
    assert.deepStrictEqual(pack?.shares, [
      { index: 0, id: "run_test123", step: 1, samples: ["a", "b"], tokens: 4, done: true },
    ])
    assert.lengthOf(pack?.microBatches ?? [], 1)
    assert.strictEqual(packer.wanted(0), 2)
    assert.isUndefined(packer.pack())
  })

  it("packs samples of a run together, but never with those of another, and one micro-batch for each rank", () => {
    for (const ranks of [1, 2]) {
      const packer = makePacker({ ...packing, width: 12, maxRuns: 2, ranks })
      const packs: Array<ReadonlyArray<ReadonlyArray<number>>> = []
      for (const [index, id] of ["run_a", "run_b"].entries()) {
        packer.open(index, { id, step: 0, rulesAt })
        // Their first tokens differ, so that they share none.
        const second = sample(`${id}-2`, 3)
        second.tokens.reverse()
        packer.offer(index, { step: 0, samples: [sample(`${id}-1`, 3), second] })
      }
      for (let pack = packer.pack(); pack !== undefined; pack = packer.pack()) {
        packs.push(pack.microBatches.map(({ loraNumTokens }) => [...loraNumTokens]))
        for (const { sequences, positions, sequenceCount } of pack.microBatches) {
          assert.strictEqual(sequenceCount, 2)
          assert.deepStrictEqual(sequences.slice(0, 7), Int32Array.of(0, 0, 0, 1, 1, 1, -1))
          assert.deepStrictEqual(positions.slice(0, 6), Int32Array.of(0, 1, 2, 0, 1, 2))
        }
      }
      const ofA = [12, 0]
      const ofB = [0, 12]
      assert.deepStrictEqual(packs, ranks === 1 ? [[ofA], [ofB]] : [[ofA, ofB]])
    }
  })

  it("refuses a sample that lacks a part, and names the part", () => {
    const limits = { vocabSize: 300, width: 5 }
    assert.isUndefined(problemOf(sample("a", 3), limits))
    assert.strictEqual(problemOf({ ...sample("a", 3), mask: new Uint8Array(0) }, limits)?.key, "mask")
  })
})
