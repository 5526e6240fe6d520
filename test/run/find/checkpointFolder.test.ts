/** Where a run keeps its checkpoints, and which files belong to them. */
import { assert, it } from "vitest"
import { belowCheckpoints, checkpointFolder } from "../../../src/run/find/checkpointFolder.ts"

it.for([
  [undefined, "checkpoints"],
  [{ checkpoint: { dir: null } }, "checkpoints"],
  [{ checkpoint: { dir: "./models/" } }, "models"],
  [{ runtime: { checkpoint_dir: "a//b" } }, "a/b"],
  [{ runtime: { checkpoint_dir: "/data/a/" } }, "/data/a"],
  [{ checkpoint: { dir: "./" } }, "."],
] as const)("a config %j keeps checkpoints in %j", ([config, folder]) =>
  assert.strictEqual(checkpointFolder(config), folder),
)

it.for([
  ["models/latest.json", "models", "latest.json"],
  ["models2/latest.json", "models", undefined],
  ["step_010/weights", ".", "step_010/weights"],
  ["ep_000001/agent.json", ".", "ep_000001/agent.json"],
  ["latest.json", ".", "latest.json"],
  ["steps/1/trajectories.json", ".", undefined],
  ["config.yaml", ".", undefined],
] as const)("%s lies below the checkpoints of %j as %j", ([path, folder, below]) =>
  assert.strictEqual(belowCheckpoints(path, folder), below),
)
