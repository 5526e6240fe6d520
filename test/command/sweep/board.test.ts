import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { makeBoard, type RowState, table } from "../../../src/command/sweep/board.ts"

const waiting: RowState = { _tag: "Waiting" }
const running: RowState = { _tag: "Running", step: 512, totalSteps: 2048, stepsPerSecond: 999.6 }
const done: RowState = { _tag: "Done", score: "493.2", about: "after 2048 steps in 1.0 s  results/1" }
const failed: RowState = { _tag: "Failed", problem: "no luck", directory: "results/2" }

const watched = (options: { readonly isTerminal: boolean; readonly labels?: ReadonlyArray<string> }) => {
  const shown: Array<string> = []
  const clock = { now: 0 }
  const board = makeBoard({
    labels: ["seed 1", "seed 2"],
    write: (text) => void shown.push(text),
    columns: 80,
    rows: 10,
    now: () => clock.now,
    ...options,
  })
  return { board, shown, clock }
}

describe("the table of a sweep", () => {
  it("has a line a run that says how far it is", () => {
    const states = [waiting, { _tag: "Running" } as const, running, done, failed]
    const rows = states.map((state, index) => ({ label: `seed ${index + 8}`, state }))
    assert.deepEqual(table(rows, 80, 20), [
      "seed 8   waiting",
      "seed 9   starting",
      "seed 10  running  512 of 2048 steps  1000/s",
      "seed 11  done  493.2 after 2048 steps in 1.0 s  results/1",
      "seed 12  failed  no luck",
      "2 running, 1 waiting, 1 done, 1 failed",
    ])
  })

  it("has its states coloured, and lines of the same width", () => {
    const rows = [waiting, running, failed].map((state, index) => ({ label: `failed ${index}`, state }))
    const painted = table(rows, 32, 20, (state) => `<${state}>`)
    assert.deepEqual(painted, [
      "failed 0  <waiting>",
      "failed 1  <running>  512 of 2048…",
      "failed 2  <failed>  no luck",
      "1 running, 1 waiting, 1 failed",
    ])
    assert.deepEqual(painted.map((line) => line.replaceAll(/[<>]/g, "")), table(rows, 32, 20)) // prettier-ignore
  })

  it("shows what runs first where there is no room for all, and counts the rest", () => {
    const states = [done, done, failed, running, waiting]
    const rows = states.map((state, index) => ({ label: String(index), state }))
    assert.deepEqual(table(rows, 80, 3), [
      "2  failed  no luck",
      "3  running  512 of 2048 steps  1000/s",
      "1 running, 1 waiting, 2 done, 1 failed",
    ])
    assert.deepEqual(table(rows, 12, 2), ["3  running…", "1 running,…"])
  })
})

describe("the board of a sweep", () => {
  it("sees on a terminal one table, drawn ten times a second at most, and at once when a run ends", () => {
    const { board, shown, clock } = watched({ isTerminal: true })
    board.update(0, running)
    board.update(1, running)
    assert.strictEqual(shown.length, 1)
    clock.now = 100
    board.update(1, running)
    board.update(0, done)
    assert.strictEqual(shown.length, 3)
    assert.isTrue(shown[0].startsWith("\r\u001b[J"))
    for (const text of shown.slice(1)) assert.isTrue(text.startsWith("\u001b[3A\r\u001b[J"))
    Effect.runSync(board.close)
    assert.include(shown[3], "seed 1  done  493.2")
    assert.include(shown[3], "seed 2  running  512")
  })

  it("is not controlled by what a run says", () => {
    const problem = "a\u001b[2Jb\rc"
    for (const isTerminal of [true, false]) {
      const { board, shown } = watched({ isTerminal })
      board.update(1, { ...failed, problem })
      assert.include(shown[0], "a�[2Jb�c")
      assert.notInclude(shown[0], problem)
    }
  })

  it("reads elsewhere a line when a run ends", () => {
    const { board, shown } = watched({ isTerminal: false })
    for (const state of [running, running, done]) board.update(0, state)
    board.update(1, failed)
    Effect.runSync(board.close)
    assert.deepEqual(shown, [
      "seed 1: 493.2 after 2048 steps in 1.0 s  results/1\n",
      "seed 2: failed: no luck  results/2\n",
    ])
  })
})
