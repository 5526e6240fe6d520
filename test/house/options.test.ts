import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { optionFiles } from "../../scripts/options.ts"
import { algorithmMeanings } from "../../scripts/settings.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** But for what the formatter changes: breaks, semicolons, and the bar before the first type of several lines. */
const plain = (text: string): string => text.replace(/[\s;]+/g, " ").replace(/: \| /g, ": ")

describe("the interfaces of settings", () => {
  it("are as the Schemas are, for each algorithm, for runs and for models", () => {
    const wanted = optionFiles()
    const found = readdirSync(join(root, "src/algorithms/options")).map((name) => `src/algorithms/options/${name}`)
    const others = ["src/train/TrainOptions.ts", "src/runtime/RuntimeOptions.ts", "src/lm/LmOptions.ts"]
    assert.sameMembers([...found, ...others], [...wanted.keys()], "npm run settings writes them")
    for (const [path, text] of wanted) {
      const isSame = plain(readFileSync(join(root, path), "utf8")) === plain(text)
      assert.isTrue(isSame, `${path}: npm run settings writes it`)
    }
  })
})

describe("what a setting means", () => {
  it("is each algorithm's own, where several have settings of one name", () => {
    const meaning = (algorithm: string, key: string): string => algorithmMeanings(algorithm).get(key) ?? ""
    for (const algorithm of ["dqn", "sac", "td3"]) {
      assert.strictEqual(
        meaning(algorithm, "nsteps"),
        "The number of rewards in a transition before its target continues with the value.",
      )
      assert.strictEqual(meaning(algorithm, "batchSize"), "The number of transitions that an update learns from.")
      assert.strictEqual(meaning(algorithm, "gamma"), "The discount factor of future rewards.")
    }
    assert.strictEqual(meaning("bc", "batchSize"), "The number of demonstrated steps that an update learns from.")
    assert.strictEqual(meaning("ppo", "nsteps"), "The number of env steps that each env takes between two updates.")
    assert.include(meaning("ppo", "gamma"), "In self-play it is negative")
  })
})
