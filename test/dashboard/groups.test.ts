/** Which runs a filter of the page finds, and how a band is labelled. */
import { assert, it } from "vitest"

const { bandLabel, matches } = await import(
  /* @vite-ignore */ new URL("../../src/dashboard/page/runs/groups.js", import.meta.url).href
)

const run = {
  name: "my-qa",
  state: "finished",
  seed: 12,
  env: "qa",
  algorithm: "history-agent",
  commit: "0123abc",
  time: "2026-01-31_12-00-00",
  population: { environment: "qa", algorithm: "history-agent", num_envs: "8" },
}

it.for([
  ["", true],
  ["history_agent", true],
  ["algorithm=history_agent", true],
  ["history-agent my_qa", true],
  ["num_envs=8", true],
  ["num-envs=8", true],
  ["num_envs=80", false],
  ["react_agent", false],
  ["2026-01-31_12-00", true],
  ["state=finished seed=12", true],
  ["state=stopped", false],
] as const)("the filter “%s” finds a run of history_agent: %s", ([filter, isFound]) =>
  assert.strictEqual(matches(run, filter), isFound),
)

it.for([
  [2000, "ppo"],
  [2001, "ppo (band from a sample of 2,000 of 2,001 runs)"],
  [10_000, "ppo (band from a sample of 2,000 of 10,000 runs)"],
] as const)("the label of a group of %i runs says whether its band is from a sample", ([runs, label]) =>
  assert.strictEqual(bandLabel("ppo", runs, 2000), label),
)
