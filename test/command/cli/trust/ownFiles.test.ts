import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { areOwnFiles, isOwnCode, isOwnConfig } from "../../../../src/command/cli/trust/ownFiles.ts"

describe("a file that the user names", () => {
  let root = ""
  let before = ""
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "effect-rl-own-"))
    const files = [
      "work/train.yaml",
      "work/train.ts",
      "work/sub/train.yaml",
      "work/config.yaml.txt",
      "work/run/config.yaml",
      "work/run/other.yaml",
      "work/run/deep/train.yaml",
      "work/run/train.ts",
      "work/results/loose.yaml",
      "work/results/loose.ts",
      "elsewhere/train.yaml",
      "elsewhere/train.ts",
      "elsewhere/settings.conf",
    ]
    for (const file of files) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), "")
    }
    symlinkSync("../elsewhere/train.yaml", join(root, "work/linked.yaml"))
    symlinkSync("../elsewhere", join(root, "work/folder"))
    symlinkSync("run/other.yaml", join(root, "work/intoRun.yaml"))
    symlinkSync("run/train.ts", join(root, "work/intoRun.ts"))
    before = process.cwd()
    process.chdir(join(root, "work"))
  })
  afterAll(() => {
    process.chdir(before)
    rmSync(root, { recursive: true })
  })

  it.each(["train.yaml", "./sub/train.yaml", "sub/../train.yaml"])("is an own config: %s", (file) =>
    assert.isTrue(isOwnConfig(file)),
  )

  it.each([
    "run/config.yaml",
    "run/other.yaml",
    "run/deep/train.yaml",
    "results/loose.yaml",
    "../elsewhere/train.yaml",
    "linked.yaml",
    "folder/train.yaml",
    "intoRun.yaml",
    "nowhere.yaml",
  ])("is no own config: %s", (file) => assert.isFalse(isOwnConfig(file)))

  it.each(["../elsewhere/settings.conf", "../elsewhere/train.ts", "../elsewhere/train.yaml"])(
    "is no own config by the flag --config, whatever its name: %s",
    (file) => {
      assert.isTrue(areOwnFiles("train.yaml", ["sub/train.yaml"]))
      assert.isFalse(areOwnFiles("train.yaml", [file]))
    },
  )

  it.each(["train.ts", "../elsewhere/train.ts"])("is own code: %s", (file) => assert.isTrue(isOwnCode(file)))

  it.each(["run/train.ts", "results/loose.ts", "intoRun.ts"])("is no own code: %s", (file) =>
    assert.isFalse(isOwnCode(file)),
  )
})
