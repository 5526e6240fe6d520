import { assert, describe, it } from "vitest"
import * as Space from "../../src/env/Space.ts"
import { add, mean } from "../../src/graph/ops.ts"
import {
  type Action,
  actionColumn,
  type Arrays,
  arraysOf,
  type Batch,
  batchInputs,
  f32,
  type F32,
  feedsOf,
} from "../../src/learner/Batch.ts"

const columns = { observations: f32(4), actions: actionColumn(Space.discrete(2)), advantages: f32() }

describe("a typed batch", () => {
  it("makes an input of each column that is read, and of no other", () => {
    const { batch, inputs, gathered } = batchInputs(columns, 8)
    mean(add(batch.advantages, batch.advantages))
    assert.deepStrictEqual(Object.keys(inputs), ["advantages"])
    assert.deepStrictEqual(batch.observations.shape, [8, 4])
    assert.deepStrictEqual([batch.actions.shape, batch.actions.dtype], [[8], "i32"])
    assert.sameMembers([...gathered()], ["advantages", "observations", "actions"])
  })

  it("is fed sequences whole, and read row by row", () => {
    const memory = { ...f32(3), per: "sequence" } as const
    const { batch, inputs } = batchInputs({ ...columns, memory }, 2, 5)
    assert.deepStrictEqual(batch.observations.shape, [10, 4])
    assert.deepStrictEqual(inputs.observations.shape, [2, 20])
    assert.deepStrictEqual(batch.memory.shape, [2, 3])
  })

  it("does not gather a column that is the same for the whole update", () => {
    const ready = { ...f32(), per: "update" } as const
    const { batch, gathered } = batchInputs({ ...columns, ready }, 8)
    assert.deepStrictEqual(batch.ready.shape, [])
    assert.deepStrictEqual(gathered(), [])
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
