import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import manifest from "../../../../package.json" with { type: "json" }
import { root } from "../effect.ts"
import { inProcess } from "../inProcess.ts"

const install = `npm pack --silent ${root.replace(/\/$/, "")}\n  npm install --save-exact ./effect-rl-${manifest.version}.tgz effect@${manifest.dependencies.effect}`

/** A folder outside of the checkout, with no package.json above it. */
const inEmptyFolder = async (body: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-init-"))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("effect init of a program", () => {
  it("writes package.json and tsconfig.json in an empty folder, and names the command that installs the library", () =>
    inEmptyFolder(async (folder) => {
      const { code, stdout, stderr } = await inProcess(["init", "train.ts"], folder)
      assert.strictEqual(code, 0, stderr)
      assert.sameMembers(readdirSync(folder), ["package.json", "train.ts", "tsconfig.json"])
      assert.deepInclude(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")), { type: "module" })
      assert.include(stdout, "wrote package.json and tsconfig.json: there was no such file\n")
      assert.include(stdout, `  ${install}\n  npx effect run train.ts\n`)
    }))

  it("writes them where the command is given, if the file is below", () =>
    inEmptyFolder(async (folder) => {
      const { stdout } = await inProcess(["init", "src/train.ts"], folder)
      assert.sameMembers(readdirSync(folder), ["package.json", "src", "tsconfig.json"])
      assert.include(stdout, `  ${install}\n  npx effect run src/train.ts\n`)
    }))

  it("writes them next to a file in another folder, and prints the cd command", () =>
    inEmptyFolder(async (folder) => {
      mkdirSync(join(folder, "here"))
      const { stdout } = await inProcess(["init", "../there/train.ts"], join(folder, "here"))
      assert.sameMembers(readdirSync(join(folder, "there")), ["package.json", "train.ts", "tsconfig.json"])
      assert.include(stdout, `  cd ${join(folder, "there")}\n  ${install}\n  npx effect run train.ts\n`)
    }))

  it("writes tsconfig.json into a project that has none, and says so", () =>
    inEmptyFolder(async (folder) => {
      writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
      const { stdout } = await inProcess(["init", "train.ts"], folder)
      assert.sameMembers(readdirSync(folder), ["package.json", "train.ts", "tsconfig.json"])
      assert.strictEqual(readFileSync(join(folder, "package.json"), "utf8"), '{ "type": "module" }')
      assert.include(stdout, "wrote tsconfig.json: there was no such file\n")
    }))

  it("overwrites neither, and writes none into a project that has both", () =>
    inEmptyFolder(async (folder) => {
      writeFileSync(join(folder, "tsconfig.json"), "{}")
      await inProcess(["init", "train.ts"], folder)
      assert.strictEqual(readFileSync(join(folder, "tsconfig.json"), "utf8"), "{}")
      writeFileSync(join(folder, "package.json"), '{ "name": "mine" }')
      mkdirSync(join(folder, "below"))
      const { stdout } = await inProcess(["init", "train.ts"], join(folder, "below"))
      assert.sameMembers(readdirSync(join(folder, "below")), ["train.ts"])
      assert.strictEqual(readFileSync(join(folder, "package.json"), "utf8"), '{ "name": "mine" }')
      assert.include(stdout, install)
    }))

  it("says nothing of installing where the library is installed, and writes no package.json for a config", () =>
    inEmptyFolder(async (folder) => {
      const { stdout: config } = await inProcess(["init", "--kind", "training"], folder)
      assert.isFalse(existsSync(join(folder, "package.json")))
      assert.include(config, `  ${install}\n  npx effect run training.yaml\n`)
      mkdirSync(join(folder, "node_modules/effect-rl"), { recursive: true })
      const { stdout } = await inProcess(["init", "train.ts"], folder)
      assert.notInclude(stdout, "npm install")
    }))
})
