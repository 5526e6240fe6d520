import { assert, describe, it } from "vitest"
import * as Space from "../../../src/rl/env/Space.ts"
import { add, mean } from "../../../src/tensor/graph/ops.ts"
import {
  type Action,
  actionColumn,
  type Arrays,
  arraysOf,
  type Batch,
  type Columns,
  f32,
  type F32,
  feedsOf,
} from "../../../src/rl/learner/Batch.ts"
import { batchSpec } from "../../../src/rl/learner/batchProgram.ts"

const columns = { observations: f32(4), actions: actionColumn(Space.discrete(2)), advantages: f32() }

describe("a typed batch", () => {
  /** Describes a program in minibatches over 8 rows in sequences, and returns the batch that its graph read. */
  const program = <C extends Columns>(columns: C, steps: number, read: (batch: Batch<C>) => void) =>
    batchSpec({
      name: "test",
      columns,
      sequences: 8 / steps,
      steps,
      minibatches: { rows: 8, count: 1 },
      build: ({ batch }) => {
        read(batch)
        return { states: {}, outputs: {} }
      },
    })

  it("makes an input of each column that is read, and of no other", () => {
    assert.deepStrictEqual(Object.keys(program(columns, 1, (batch) => void batch.advantages).inputs), ["advantages"])
    const { inputs, minibatches } = program(columns, 1, (batch) => {
      mean(add(batch.advantages, batch.advantages))
      assert.deepStrictEqual(batch.observations.shape, [8, 4])
      assert.deepStrictEqual([batch.actions.shape, batch.actions.dtype], [[8], "i32"])
    })
    assert.deepStrictEqual(Object.keys(inputs), ["advantages", "observations", "actions"])
    assert.sameMembers([...(minibatches?.gathered ?? [])], ["advantages", "observations", "actions"])
  })

  it("is fed sequences whole, and read row by row", () => {
    const memory = { ...f32(3), per: "sequence" } as const
    const { inputs } = program({ ...columns, memory }, 4, (batch) => {
      assert.deepStrictEqual(batch.observations.shape, [8, 4])
      assert.deepStrictEqual(batch.memory.shape, [2, 3])
    })
    assert.deepStrictEqual(inputs.observations.shape, [2, 16])
  })

  it("does not gather a column that is the same for the whole update", () => {
    const ready = { ...f32(), per: "update" } as const
    const { minibatches } = program({ ...columns, ready }, 1, (batch) => assert.deepStrictEqual(batch.ready.shape, []))
    assert.deepStrictEqual(minibatches?.gathered, [])
  })

  it("has arrays of its rows: shared ones where they fit, else new ones", () => {
    const advantages = new Float32Array(6)
    const arrays = arraysOf(columns, 6, { advantages, observations: new Float32Array(1) })
    assert.strictEqual(arrays.advantages, advantages)
    assert.strictEqual(arrays.observations.length, 24)
    assert.instanceOf(arrays.actions, Int32Array)
  })

  it("takes the feeds of a program only if they hold the right kind of number", () => {
    const feeds = { observations: new Float32Array(4), actions: new Int32Array(1), advantages: new Float32Array(1) }
    assert.strictEqual(feedsOf(columns, feeds).actions, feeds.actions)
    assert.throws(
      () => feedsOf(columns, { ...feeds, advantages: new Int32Array(1) }),
      /^feedsOf: the program has no f32 input "advantages"$/,
    )
  })

  it("does not compile with a column that it lacks, or with a column of another kind", () => {
    type Rows = { observations: F32; actions: Action; advantages: F32 }
    const wrong = (batch: Batch<Rows>, arrays: Arrays<Rows>) => {
      const right: Float32Array = arrays.advantages
      // @ts-expect-error there is no column "advantage"
      const misspelt = batch.advantage
      // @ts-expect-error actions may be whole numbers
      const whole: Float32Array = arrays.actions
      // @ts-expect-error a loss may read a batch, not write it
      batch.advantages = batch.observations
      return [right, misspelt, whole]
    }
    assert.isFunction(wrong)
  })
})
