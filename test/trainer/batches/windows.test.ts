import { assert, describe, it } from "vitest"
import { type Item, placeInWindows } from "../../../src/trainer/batches/windows.ts"

/** Shows the items in each window of 16 tokens as `run:length@start`, with `+shared` if it shares tokens. */
const shown = (
  items: ReadonlyArray<readonly [run: number, length: number, prompt?: string]>,
  block = 4,
): ReadonlyArray<string> => {
  const list = items.map(([run, length, prompt = ""]): Item => {
    const tokens = new Int32Array(length)
    tokens.set(Array.from(prompt, (letter) => letter.charCodeAt(0)))
    return { run, tokens, prompt: prompt.length }
  })
  const { windows, placements } = placeInWindows(list, { width: 16, block })
  return Array.from({ length: windows }, (_, window) =>
    placements
      .filter((placement) => placement.window === window)
      .map(({ item, start, shared }) => {
        const { run, tokens } = list[item]
        return `${run}:${tokens.length}@${start}${shared > 0 ? `+${shared}` : ""}`
      })
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

  it("hold a prompt once, before the rests of its samples", () => {
    assert.deepEqual(
      shown([
        [0, 7, "abcd"],
        [0, 6, "abcd"],
        [0, 9, "abcd"],
        [0, 8, "abcd"],
      ]),
      // 9 + 4 + 3 tokens, so that the last sample of the group takes its prompt along.
      ["0:9@0 0:8@9+4 0:7@13+4", "0:6@0"],
    )
  })

  it("bring the samples of a group together, also if others would fill a window better", () => {
    assert.deepEqual(
      shown([
        [0, 10, "aaaaaa"],
        [0, 8, "bbbbbb"],
        [0, 9, "aaaaaa"],
        [0, 7, "bbbbbb"],
        [0, 9, "aaaaaa"],
        [0, 7, "bbbbbb"],
      ]),
      ["0:10@0 0:9@10+6 0:9@13+6", "0:8@0 0:7@8+6 0:7@9+6"],
    )
  })

  it("share the first tokens of different prompts, but not with another run", () => {
    assert.deepEqual(
      shown([
        [0, 7, "sort b"],
        [0, 7, "sort a"],
        [0, 6, "sort"],
        [1, 4, "sort"],
      ]),
      // In the order of the prompts: `sort`, `sort a`, `sort b`.
      ["0:6@0 0:7@6+4 0:7@9+5 1:4@12"],
    )
  })

  it("are none without samples", () => assert.deepEqual(shown([]), []))
})
