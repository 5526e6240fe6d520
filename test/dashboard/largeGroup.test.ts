/** The band of a group of more runs than anybody reads the files of. */
import { assert, it } from "vitest"
import { mostRunsInABand } from "../../src/dashboard/bands.ts"
import type { Confined } from "../../src/dashboard/confined-node.ts"
import { makeCurves } from "../../src/dashboard/curves-node.ts"
import { scoreLine } from "./folder.ts"

it("a group of 5,000 runs has the band of 2,000 of them, evenly spread", async () => {
  const read = new Set<string>()
  const scores = scoreLine(10, 7, 0)
  const files: Confined = {
    root: "/",
    only: "",
    locate: () => Promise.resolve(undefined),
    bytes: () => Promise.resolve(undefined),
    list: () => Promise.resolve({ files: [], folders: [] }),
    size: (path) => Promise.resolve(path.endsWith("/train/scores.jsonl") ? scores.length : undefined),
    text: (path, from = 0) => {
      read.add(path.split("/")[0])
      return Promise.resolve(path.endsWith("/train/scores.jsonl") ? scores.slice(from) : undefined)
    },
  }
  const runs = Array.from({ length: 5000 }, (_, index) => String(index).padStart(4, "0"))
  const band = await makeCurves(files).band(runs, "train", "steps")
  assert.deepStrictEqual([band.of, band.x, band.mean, band.runs], [mostRunsInABand, [10], [7], [mostRunsInABand]])
  assert.strictEqual(read.size, mostRunsInABand)
  assert.isTrue(read.has("0000") && read.has("4999"))
})
