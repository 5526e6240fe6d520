import { assert, describe, it } from "vitest"
import { effect, withFolder } from "../effect.ts"
import { hostileConfigs, honestRun, isMarked, makeHostile } from "./hostile.ts"

/** The commands that read the config of a run, each with the words after `effect`. */
const commands = {
  training: (run: string): ReadonlyArray<ReadonlyArray<string>> => [
    ...commands.agents(run),
    ["run", `${run}/config.yaml`, "--seeds", "1..2"],
    ["run", "training.yaml", "--resume", run, "--name", "evil"],
    ...["h", "h5", "worker", "gif"].map((format) => ["export", run, "--to", format]),
  ],
  agents: (run: string): ReadonlyArray<ReadonlyArray<string>> => [
    ["eval", run],
    ["eval", run, "--json"],
    ["replay", run],
    ["run", `${run}/config.yaml`],
    ["run", `${run}/config.yaml`, "--quiet"],
  ],
}

describe("a run of somebody else", () => {
  for (const kind of ["training", "agents"] as const) {
    it(`does not start what its config names: ${Object.keys(hostileConfigs("")[kind]).join(", ")}`, () =>
      withFolder(async (folder) => {
        const run = await honestRun(folder, kind)
        for (const [name, config] of Object.entries(hostileConfigs(folder)[kind])) {
          makeHostile(folder, run, config)
          for (const words of commands[kind](run)) {
            const { code, stderr } = await effect(words, folder)
            const what = `${name}: effect ${words.join(" ")}: ${stderr}`
            assert.isFalse(isMarked(folder), what)
            assert.strictEqual(code, 2, what)
            const line = stderr.trim().split("\n").at(-1) ?? ""
            assert.match(line, /config\.yaml.*would start .*(touch|evil).*repeat the command with --trust/, what)
          }
        }
      }))
  }
})
