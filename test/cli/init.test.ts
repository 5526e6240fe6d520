import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { files, kinds } from "../../src/cli/initFiles.ts"
import { validator } from "../house/validators.ts"
import { effect, resultOf, withFolder } from "./effect.ts"

const read = (folder: string, file: string): string => readFileSync(join(folder, file), "utf8")

/** The schema that an editor is told of. */
const schemaOf = (text: string): string | undefined => /^# yaml-language-server: \$schema=(\S+)$/m.exec(text)?.[1]

describe("effect init", () => {
  for (const kind of kinds) {
    it(`writes a file that runs as it is (${kind}), by the command that it says`, () =>
      withFolder(async (folder) => {
        const made = await effect(["init", "--kind", kind], folder)
        assert.strictEqual(made.code, 0, made.stderr)
        const { file, schema } = files[kind]
        const command = /npx effect (run .*)$/m.exec(made.stdout)?.[1] ?? ""
        assert.strictEqual(command, `run ${file}`)
        assert.include(read(folder, file), `npx effect ${command}`)

        // Learning takes seconds, and is shown elsewhere.
        const short = file.startsWith("training") ? ["--total-steps", "2048", "--set", "validation.episodes=2"] : []
        const outcome = await effect([...command.split(" "), "--json", "--quiet", ...short], folder)
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        assert.isNotNull(resultOf(outcome).validation)

        if (schema === null) return
        const named = schemaOf(read(folder, file)) ?? ""
        assert.strictEqual(resolve(folder, named), resolve("schemas", schema))
        assert.isUndefined(validator(schema)(parse(read(folder, file))))
      }))
  }

  it("writes an experiment whose agent comes to know more than nothing", () =>
    withFolder(async (folder) => {
      await effect(["init"], folder)
      const { validation } = resultOf(await effect(["run", "experiment.yaml", "--json", "--quiet"], folder))
      assert.containSubset(validation, { episodes: 40, step: 60 })
      assert.isAbove(Number(Object(validation).meanReturn), 0.7)
    }))

  it("says how other models are asked: each of its lines is one that the file can have", () =>
    withFolder(async (folder) => {
      await effect(["init", "a.yaml"], folder)
      const text = read(folder, "a.yaml")
      const models = [...text.matchAll(/^ {4}# (model: \S+) /gm)].map(([, model]) => model)
      assert.isAtLeast(models.length, 5)
      for (const model of models) {
        const other = text.replace("model: scripted:reader", model).replace(/# (limits|budget|base_url): /g, "$1: ")
        assert.notStrictEqual(other, text)
        assert.isUndefined(validator("experiment.schema.json")(parse(other)), model)
      }
    }))

  it("leaves a file that is there alone, unless it is told to write over it", () =>
    withFolder(async (folder) => {
      await effect(["init", "mine.ts"], folder)
      const program = read(folder, "mine.ts")
      assert.include(program, "Train.run")
      const refused = await effect(["init", "mine.ts"], folder)
      assert.strictEqual(refused.code, 2)
      assert.strictEqual(refused.stderr, "effect: mine.ts: it is there; --force writes over it\n")
      rmSync(join(folder, "mine.ts"))
      await effect(["init", "mine.yaml"], folder)
      const forced = await effect(["init", "mine.yaml", "--kind", "questions", "--force"], folder)
      assert.strictEqual(forced.code, 0, forced.stderr)
      assert.include(read(folder, "mine.yaml"), "name: questions")
    }))

  it("makes the folder that it writes to, and takes a file's name in quotes where a shell needs them", () =>
    withFolder(async (folder) => {
      const { code, stdout } = await effect(["init", "new folder/my run.yml"], folder)
      assert.strictEqual(code, 0)
      assert.include(stdout, "npx effect run 'new folder/my run.yml'")
      assert.isTrue(existsSync(join(folder, "new folder/my run.yml")))
    }))

  it("refuses names that effect run couldn't read", () =>
    withFolder(async (folder) => {
      for (const [args, expected] of [
        [["a.txt"], "a.txt: expected a name that ends in .yaml, .yml or .ts"],
        [["a.ts", "--kind", "questions"], "a.ts: expected a name that ends in .yaml or .yml"],
        [["a.yaml", "--kind", "program"], "a.yaml: expected a name that ends in .ts or .mts"],
      ] as const) {
        const { code, stderr } = await effect(["init", ...args], folder)
        assert.strictEqual(code, 2)
        assert.strictEqual(stderr, `effect: ${expected}\n`)
      }
    }))

  it("names the schema of the installed package, and far from any puts a copy beside the file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "effect-init-"))
    try {
      const alone = await effect(["init", "alone.yaml"], folder)
      assert.strictEqual(alone.code, 0, alone.stderr)
      assert.strictEqual(schemaOf(read(folder, "alone.yaml")), "experiment.schema.json")
      assert.strictEqual(read(folder, "experiment.schema.json"), readFileSync("schemas/experiment.schema.json", "utf8"))

      const installed = join(folder, "node_modules/effect-rl/schemas/experiment.schema.json")
      mkdirSync(dirname(installed), { recursive: true })
      mkdirSync(join(folder, "below"))
      copyFileSync("schemas/experiment.schema.json", installed)
      await effect(["init", "below/experiment.yaml"], folder)
      const named = schemaOf(read(folder, "below/experiment.yaml"))
      assert.strictEqual(named, "../node_modules/effect-rl/schemas/experiment.schema.json")
      assert.isFalse(existsSync(join(folder, "below/experiment.schema.json")))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
