/** The band of a group of more runs than anybody reads the files of. */
import { Effect } from "effect"
import { assert, it } from "vitest"
import { mostRunsInABand } from "../../../../src/command/ui/curves/bands.ts"
import type { FileSource } from "../../../../src/run/read/FileSource.ts"
import { makeCurves } from "../../../../src/command/ui/curves/curves.ts"
import { scoreLine } from "../folder.ts"

it("a group of 5,000 runs has the band of 2,000 of them, evenly spread", { tags: "slow" }, async () => {
  const read = new Set<string>()
  const scores = scoreLine(10, 7, 0)
  const bytes = new TextEncoder().encode(scores)
  const files: FileSource = {
    list: () => Effect.succeed(["scores"]),
    folders: () => Effect.succeed([]),
    entries: () => Effect.succeed({ files: [], folders: [] }),
    text: () => Effect.succeed(undefined),
    size: (path) => Effect.succeed(path.endsWith("/train/scores.jsonl") ? bytes.length : undefined),
    part: (path, from) =>
      Effect.sync(() => {
        read.add(path.split("/")[0])
        return path.endsWith("/train/scores.jsonl") ? bytes.subarray(from) : undefined
      }),
    tree: () => Effect.succeed([]),
    isAlive: () => Effect.succeed(false),
    warn: () => Effect.void,
  }
  const runs = Array.from({ length: 5000 }, (_, index) => String(index).padStart(4, "0"))
  const band = await Effect.runPromise(makeCurves(files).band(runs, "train", "steps"))
  assert.deepStrictEqual([band.of, band.x, band.mean, band.runs], [mostRunsInABand, [10], [7], [mostRunsInABand]])
  assert.strictEqual(read.size, mostRunsInABand)
  assert.isTrue(read.has("0000") && read.has("4999"))
})
