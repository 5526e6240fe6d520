import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, extname, join, resolve } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { files, type ProjectKind, kinds } from "../../../../src/command/cli/init/files.ts"
import { validator } from "../../../house/validators.ts"
import { effect, resultOf, withFolder, write } from "../effect.ts"

const read = (folder: string, file: string): string => readFileSync(join(folder, file), "utf8")

/** The schema that an editor is told of. */
const schemaOf = (text: string): string | undefined => /^# yaml-language-server: \$schema=(\S+)$/m.exec(text)?.[1]

const init = async (args: ReadonlyArray<string>, folder: string): Promise<{ stdout: string; error: string | null }> => {
  const { code, stdout, stderr } = await effect(["init", ...args], folder)
  return { stdout, error: code === 0 ? null : stderr.replace(/^effect: /, "").trimEnd() }
}

/** The flags that make a run of each kind short; an experiment runs as it is, so that the agent learns. */
const short: Readonly<Record<ProjectKind, ReadonlyArray<string>>> = {
  experiment: [],
  questions: [],
  evaluation: ["--set", "repeats=1", "--set", "pass_at=[1]"],
  training: ["--total-steps", "512", "--set", "validation.episodes=1"],
  program: ["--total-steps", "512", "--set", "validation.episodes=1"],
}

describe("effect init", () => {
  for (const kind of kinds) {
    it(
      `writes a file that runs as it is (${kind}), by the command that it says`,
      { tags: kind === "evaluation" ? [] : "slow" },
      () =>
        withFolder(async (folder) => {
          const { file, schema, command } = files[kind]
          const { stdout, error } = await init(kind === "program" ? [file] : ["--kind", kind], folder)
          assert.isNull(error)
          const said = new RegExp(`npx effect (${command} .*)$`, "m").exec(stdout)?.[1] ?? ""
          assert.strictEqual(said, `${command} ${file}`)
          assert.include(read(folder, file), `npx effect ${said}`)

          const outcome = await effect([...said.split(" "), "--json", "--quiet", ...short[kind]], folder)
          assert.strictEqual(outcome.code, 0, outcome.stderr)
          const { validation, failed, runDir } = resultOf(outcome)
          // Nothing in the file names its runs, so they have the name of the file.
          assert.include(String(runDir), `_${basename(file, extname(file))}_`)
          assert.isNotNull(validation)
          if (kind === "evaluation") assert.strictEqual(failed, 0)
          if (kind === "experiment") {
            assert.containSubset(validation, { episodes: 40, step: 60 })
            assert.isAbove(Number(Object(validation).meanReturn), 0.7, "its agent comes to know more than nothing")
          }

          if (schema === null) return
          const named = schemaOf(read(folder, file)) ?? ""
          assert.strictEqual(resolve(folder, named), resolve("schemas", schema))
          assert.isUndefined(validator(schema)(parse(read(folder, file))))
        }),
    )
  }

  for (const kind of ["experiment", "evaluation"] as const) {
    it(
      `names other models in comments that are valid when they are uncommented (${kind})`,
      { tags: kind === "evaluation" ? [] : "slow" },
      () => {
        const { text, schema } = files[kind]
        const problem = validator(schema ?? "")
        const models = [...text.matchAll(/^ +# (model: \S+) /gm)].map(([, model]) => model)
        assert.isAtLeast(models.length, 5)
        for (const model of models) {
          const other = text.replace("model: scripted:reader", model).replace(/# (limits|budget|base_url): /g, "$1: ")
          assert.notStrictEqual(other, text)
          assert.isUndefined(problem(parse(other)), model)
        }
      },
    )
  }

  it("doesn't overwrite an existing file without --force", () =>
    withFolder(async (folder) => {
      write(folder, "mine.yaml", "name: mine")
      const refused = await effect(["init", "mine.yaml"], folder)
      assert.strictEqual(refused.code, 2)
      assert.strictEqual(refused.stderr, "effect: mine.yaml: this file exists already; --force overwrites it\n")
      assert.strictEqual(read(folder, "mine.yaml"), "name: mine")
      const forced = await effect(["init", "mine.yaml", "--kind", "questions", "--force"], folder)
      assert.strictEqual(forced.code, 0, forced.stderr)
      assert.include(read(folder, "mine.yaml"), "# Your own questions")
    }))

  it("makes the folder that it writes to, and takes a file's name in quotes where a shell needs them", () =>
    withFolder(async (folder) => {
      const { error, stdout } = await init(["new folder/my run.yml"], folder)
      assert.isNull(error)
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
        assert.strictEqual((await init(args, folder)).error, expected)
      }
    }))

  it("keeps a schema that the folder has, and writes through no link", async () => {
    const folder = mkdtempSync(join(tmpdir(), "effect-init-"))
    try {
      const schema = join(folder, "experiment.schema.json")
      write(folder, "experiment.schema.json", "{}")
      const kept = await effect(["init", "one.yaml"], folder)
      assert.strictEqual(kept.code, 0)
      assert.strictEqual(
        kept.stderr,
        `${schema}: kept, although it differs from the schema of this version; --force replaces it\n`,
      )
      assert.strictEqual(read(folder, "experiment.schema.json"), "{}")
      write(folder, "own.json", "own")
      rmSync(schema)
      symlinkSync("own.json", schema)
      assert.strictEqual((await effect(["init", "two.yaml"], folder)).code, 0)
      assert.isNull((await init(["two.yaml", "--force"], folder)).error)
      assert.strictEqual(read(folder, "own.json"), "own")
      assert.strictEqual(read(folder, "experiment.schema.json"), readFileSync("schemas/experiment.schema.json", "utf8"))
      // The second copy equals the first.
      assert.strictEqual((await effect(["init", "three.yaml"], folder)).stderr, "")
      symlinkSync("missing.json", join(folder, "tsconfig.json"))
      assert.strictEqual(
        (await init(["train.ts"], folder)).error,
        `${join(folder, "tsconfig.json")}: expected a file or none, found a link to a missing file; remove the link`,
      )
      assert.isFalse(existsSync(join(folder, "missing.json")))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("names the schema of the installed package, or copies it next to the file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "effect-init-"))
    try {
      assert.isNull((await init(["alone.yaml"], folder)).error)
      assert.strictEqual(schemaOf(read(folder, "alone.yaml")), "experiment.schema.json")
      assert.strictEqual(read(folder, "experiment.schema.json"), readFileSync("schemas/experiment.schema.json", "utf8"))

      const installed = join(folder, "node_modules/effect-rl/schemas/experiment.schema.json")
      mkdirSync(dirname(installed), { recursive: true })
      mkdirSync(join(folder, "below"))
      copyFileSync("schemas/experiment.schema.json", installed)
      await init(["below/experiment.yaml"], folder)
      const named = schemaOf(read(folder, "below/experiment.yaml"))
      assert.strictEqual(named, "../node_modules/effect-rl/schemas/experiment.schema.json")
      assert.isFalse(existsSync(join(folder, "below/experiment.schema.json")))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
