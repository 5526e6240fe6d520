/** Checks how the band of a group is labelled. */
import { assert, it } from "vitest"

const { bandLabel } = await import(
  /* @vite-ignore */ new URL("../../../src/command/ui/page/runs/groups.js", import.meta.url).href
)

it.for([
  [2000, "ppo"],
  [2001, "ppo (band from a sample of 2,000 of 2,001 runs)"],
  [10_000, "ppo (band from a sample of 2,000 of 10,000 runs)"],
] as const)("the label of a group of %i runs says whether its band is from a sample", ([runs, label]) =>
  assert.strictEqual(bandLabel("ppo", runs, 2000), label),
)
