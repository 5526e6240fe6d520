import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

// The command remembers what its user has permitted; tests must neither use that nor add to it. All files of a process share
// one folder, which is gone when the process ends.
if (process.env.EFFECT_RL_TEST_SETTINGS === undefined) {
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-settings-"))
  process.env.EFFECT_RL_TEST_SETTINGS = folder
  process.env.XDG_CONFIG_HOME = folder
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
}
