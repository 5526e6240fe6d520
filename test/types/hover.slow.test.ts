import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Schema } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { fromData, names, schemaOf } from "../../src/rl/algorithms/registry.ts"
import { isPlain } from "../../src/base/config/Config.ts"
import { LmConfig } from "../../src/agents/lm/LmConfig.ts"
import { RunSettings } from "../../src/agents/training/RuntimeConfig.ts"
import { Settings } from "../../src/rl/train/Settings.ts"
import { membersOf } from "../../scripts/interfaces.ts"
import { fileOfAlgorithm, titleOf } from "../../scripts/settings.ts"
import { builtPackage } from "../package/built.ts"
import { languageService, type LanguageService, root } from "./languageService.ts"

/** Tests the text that an editor shows over each setting, from the package's declarations. */
const folder = mkdtempSync(join(root, ".tmp-types-"))
const project = basename(folder)
let service: LanguageService
beforeAll(async () => {
  mkdirSync(join(folder, "node_modules"))
  symlinkSync(builtPackage().installed, join(folder, "node_modules/effect-rl"))
  // In a package of another name, "effect-rl" is not the checkout.
  writeFileSync(join(folder, "package.json"), `{ "private": true, "type": "module" }`)
  writeFileSync(join(folder, "tsconfig.json"), `{ "extends": "../tsconfig.json", "include": ["*.ts"] }`)
  service = await languageService()
})
afterAll(() => {
  service.close()
  rmSync(folder, { recursive: true, force: true })
})

const algorithms = [...names, ...Object.keys(fromData)].map((name) => {
  const title = titleOf(name)
  const schema = schemaOf(name)
  const before = Object.hasOwn(fromData, name) ? `${title}.make({} as never, {` : `${title}.make({`
  return { title, before, defaults: Object.entries(Schema.decodeSync(schema)({})) }
})

const others = [
  {
    name: "Train",
    before: "Train.run({",
    keys: Object.keys(Schema.decodeSync(Settings)({ env: "", algorithm: {}, totalSteps: 1 })).filter(
      // Only a file states the kind of its run.
      (key) => key !== "kind",
    ),
    members: membersOf("src/rl/train/Settings.ts", "TrainInput"),
    nested: {
      "validation.everySteps": "The number of env steps, over all envs, between two validations",
      "checkpoint.everySteps": "The number of env steps, over all envs, between two checkpoints",
      "trainer.validateFreq": "The number of env steps, over all envs, between two validations",
    },
  },
  {
    name: "Runtime",
    before: "Runtime.run({",
    keys: Object.keys(Schema.decodeSync(RunSettings)({})).filter((key) => key !== "kind"),
    members: membersOf("src/agents/training/Runtime.ts", "RuntimeInput"),
    nested: { "runtime.validationFreq": "The number of ended episodes between two validations" },
  },
  {
    name: "LmConfig",
    before: "LmConfig.make({",
    keys: Object.keys(Schema.decodeSync(LmConfig)({ model: "any" })),
    members: membersOf("src/agents/lm/LmConfig.ts", "LmOptions"),
    nested: { "budget.calls": "The largest number of requests to a server" },
  },
]

/**
 * Returns a default as editors show it: without a dash of theirs before a minus. A block with many keys has none, because each
 * of its keys shows its own.
 */
const shownDefault = (value: unknown): string => {
  if (isPlain(value)) return ""
  const text = JSON.stringify(value)
  return text.startsWith("-") ? `@default* ${text}` : `@default* — ${text}`
}

const oneLine = (text: string): string => text.replaceAll(/\\([`[\]*_{}])/g, "$1").replaceAll(/`{3}\w*|\s+/g, " ")

describe("an editor over the package's declarations", () => {
  it.each(algorithms)(
    "shows what each setting of $title means and is by default",
    async ({ title, before, defaults }) => {
      const start = `import { ${title} } from "effect-rl"\n${before}\n`
      const text = `${start}${defaults.map(([key]) => `  ${key}: undefined!,\n`).join("")}})\n`
      const members = membersOf(fileOfAlgorithm(title), `${title}Options`)
      const file = `${project}/${title}.ts`
      assert.isAbove(defaults.length, 5)
      for (const [key, value] of defaults) {
        const shown = oneLine(await service.hover(file, text, text.indexOf(`  ${key}: `) + 2))
        assert.include(shown, oneLine(members.get(key)?.meaning ?? "a comment"), `${title}.${key}`)
        assert.include(shown, shownDefault(value), `${title}.${key}`)
      }
    },
  )

  it.each(others)("shows the same of the settings of $before", async ({ name, before, keys, members, nested }) => {
    const start = `import { ${name} } from "effect-rl"\n${before}\n`
    const text = `${start}${keys.map((key) => `  ${key}: undefined!,\n`).join("")}})\n`
    const file = `${project}/${name}.ts`
    assert.isAbove(keys.length, 2)
    for (const key of keys) {
      const shown = oneLine(await service.hover(file, text, text.indexOf(`  ${key}: `) + 2))
      const { meaning = "a comment", byDefault } = members.get(key) ?? {}
      assert.include(shown, oneLine(meaning), key)
      assert.include(shown, byDefault === undefined ? "" : `@default* — ${byDefault}`, key)
    }
    for (const [path, meaning] of Object.entries(nested)) {
      const [block, key] = path.split(".")
      const inner = `${start}  ${block}: { ${key}: undefined! },\n})\n`
      const shown = oneLine(await service.hover(`${project}/${path}.ts`, inner, inner.indexOf(`${key}: `)))
      assert.include(shown, meaning, path)
    }
  })
})
