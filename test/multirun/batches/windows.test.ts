import { assert, describe, it } from "vitest"
import { type Item, placeInWindows } from "../../../src/multirun/batches/windows.ts"

/** Shows the items in each window of 16 tokens as `run:length@start`. */
const shown = (items: ReadonlyArray<readonly [run: number, length: number]>, block = 4): ReadonlyArray<string> => {
  const list = items.map(([run, length]): Item => ({ run, length }))
  const { windows, placements } = placeInWindows(list, { width: 16, block })
  return Array.from({ length: windows }, (_, window) =>
    placements
      .filter((placement) => placement.window === window)
      .map(({ item, start }) => `${list[item].run}:${list[item].length}@${start}`)
      .join(" "),
  )
}

describe("windows", () => {
  it("are filled from the longest sample to the shortest, each into the first window with room", () => {
    assert.deepEqual(
      shown([
        [0, 6],
        [0, 6],
        [0, 10],
        [0, 10],
      ]),
      ["0:10@0 0:6@10", "0:10@0 0:6@10"],
    )
    assert.deepEqual(
      shown([
        [0, 8],
        [0, 8],
        [0, 16],
      ]),
      ["0:8@0 0:8@8", "0:16@0"],
    )
  })

  it("of two runs share at most one: the one of the first run with the most room, from a multiple of the block", () => {
    assert.deepEqual(
      shown([
        [0, 9],
        [0, 16],
        [1, 4],
        [1, 2],
      ]),
      ["0:16@0", "0:9@0 1:4@12"].concat("1:2@0"),
    )
    assert.deepEqual(
      shown([
        [0, 12],
        [0, 5],
        [0, 13],
        [1, 8],
      ]),
      ["0:13@0", "0:12@0", "0:5@0 1:8@8"],
    )
    assert.deepEqual(
      shown([
        [0, 3],
        [1, 3],
        [2, 3],
        [3, 4],
        [4, 1],
      ]),
      ["0:3@0 1:3@4 2:3@8 3:4@12", "4:1@0"],
    )
  })

  it("are none without samples", () => assert.deepEqual(shown([]), []))
})
