/** Runs that are finished, and files that are not a run's own. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { begin, effect, resultOf, until, withFolder, write } from "../effect.ts"

const program = (settings: string, after = "") => `
import { A2c, CartPole, Train } from "effect-rl"
import { Effect } from "effect"
export default Train.run({ env: CartPole.env, numEnvs: 2, ${settings} })${after}
`
const a2c = "algorithm: A2c.make({ hidden: [8], nsteps: 8 }), totalSteps: 64"
const other = "algorithm: A2c.make({ hidden: [8], nsteps: 8, lstm: 4 }), totalSteps: 64"

/** A program that names its training itself. */
const trainNamed = (text: string): string => text.replace("numEnvs", 'name: "train", numEnvs')

/** Gives the content of every file of a folder, and the time at which it was written. A lease names who opened a run last. */
const contentsOf = (folder: string): ReadonlyArray<unknown> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile() && !path.endsWith("/run.lease"))
    .map((path) => [path, statSync(path).mtimeMs, readFileSync(path, "latin1")])

/** Counts how often the runs in a folder were started or resumed. */
const startsIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("run.log"))
    .flatMap((path) => readFileSync(join(folder, path), "utf8").match(/Z (started|resumed)/g) ?? []).length

describe("a run that is finished", () => {
  it(
    "is left as it is when it is resumed, by its folder and as the latest, and gives its result again",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        write(folder, "pole.ts", program(a2c))
        const first = resultOf(await effect(["run", "pole.ts", "--quiet", "--json"], folder))
        const before = contentsOf(join(folder, first.runDir))
        for (const wanted of [first.runDir, "latest"]) {
          const again = await effect(["run", "pole.ts", "--quiet", "--json", "--resume", wanted], folder)
          assert.strictEqual(again.code, 0, again.stderr)
          assert.deepStrictEqual(resultOf(again), first)
          assert.deepStrictEqual(contentsOf(join(folder, first.runDir)), before)
        }
        const shown = await effect(["run", "pole.ts", "--resume", "latest"], folder)
        assert.match(
          shown.stdout,
          /^this run is finished, and nothing has changed; train it further with a larger --total-steps\n64/,
        )
        assert.isTrue(shown.stderr.startsWith(`run: ${first.runDir}\n`), shown.stderr)
        const typed = await effect(["run", "pole.ts", "--resume", first.runDir], folder)
        assert.notInclude(typed.stderr, "run: ")
        const further = await effect(
          ["run", "pole.ts", "--quiet", "--json", "--resume", "latest", "--total-steps", "96"],
          folder,
        )
        assert.strictEqual(resultOf(further).steps, 96)
        assert.strictEqual(resultOf(further).runDir, first.runDir)
      }),
  )

  it("stays finished when a signal comes before its process ends", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "lasting.ts", program(a2c, ".pipe(Effect.tap(() => Effect.never))"))
      const results = join(folder, "results")
      const codeBefore = process.exitCode
      const { interrupt, ended } = begin(["run", file, "--results-dir", results, "--quiet", "--json"])
      const isFinished = (): boolean =>
        existsSync(results) &&
        readdirSync(results, { recursive: true, encoding: "utf8" }).some((path) => path.endsWith("return.json"))
      await until(isFinished)
      interrupt()
      const { stdout, stderr } = await ended
      const code = process.exitCode
      process.exitCode = codeBefore
      assert.strictEqual(code, 0)
      assert.strictEqual(JSON.parse(stdout).steps, 64)
      assert.notInclude(stderr, "interrupted")
    }),
  )
})

describe("a run that a model's error ends", () => {
  it("prints the command that resumes it, even if the error is of another copy of the library", () =>
    withFolder(async (folder) => {
      const error =
        'Object.assign(new Error("m: no key"), { _tag: "LmError", model: "m", reason: "unauthorised", attempts: 1 })'
      write(folder, "pole.ts", program(a2c, `.pipe(Effect.tap(() => Effect.fail(${error})))`))
      const { code, stderr } = await effect(["run", "pole.ts", "--quiet", "--csv"], folder)
      assert.strictEqual(code, 1)
      assert.match(stderr, /m: no key; resume with: npx effect run pole\.ts --resume results\/\S+ --csv\n$/)
    }))
})

describe("a file that is not the run's own", () => {
  it("is refused with the setting that differs, unless --name has the run's name", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      write(folder, "pole.ts", program(a2c))
      write(folder, "lstm.ts", program(other))
      write(folder, "copy.ts", program(a2c))
      const { runDir, digest } = resultOf(await effect(["run", "pole.ts", "--quiet", "--json"], folder))
      const before = contentsOf(join(folder, "results"))
      const refused = await effect(["run", "lstm.ts", "--resume", runDir], folder)
      assert.strictEqual(refused.code, 2)
      assert.strictEqual(
        refused.stderr,
        `effect: --resume ${runDir}: this is a run of pole, but lstm.ts is another training: algorithm.lstm is 0 in the ` +
          "run and 4 in the file; give the run's own file, repeat the --set or --config that it was started with, or add " +
          "--name pole if the file was renamed\n",
      )
      assert.deepStrictEqual(contentsOf(join(folder, "results")), before)
      for (const words of [["copy.ts"], ["lstm.ts", "--name", "pole"], [join(runDir, "config.yaml")]]) {
        const taken = await effect(["run", ...words, "--quiet", "--json", "--resume", runDir], folder)
        assert.strictEqual(taken.code, 0, taken.stderr)
        assert.strictEqual(resultOf(taken).digest, digest)
      }
    }),
  )

  it("is refused, though it has the run's name, where it has another env or algorithm", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "a"))
      mkdirSync(join(folder, "b"))
      const own = write(folder, "a/train.ts", program(a2c))
      const { runDir } = resultOf(await effect(["run", own, "--quiet", "--json"], folder))
      const before = contentsOf(join(folder, "results"))
      for (const [file, what, text] of [
        [
          "b/train.ts",
          'algorithm is "a2c" in the run and "ppo"',
          program(a2c).replaceAll("A2c", "Ppo").replace("nsteps: 8", "nsteps: 8, minibatches: 1"),
        ],
        [
          "b/train.ts",
          'env is "CartPole-v1" in the run and "Acrobot-v1"',
          program(a2c).replaceAll("CartPole", "Acrobot"),
        ],
        [
          "b/other.ts",
          'env is "CartPole-v1" in the run and "Acrobot-v1"',
          trainNamed(program(a2c)).replaceAll("CartPole", "Acrobot"),
        ],
      ]) {
        write(folder, file, text)
        const refused = await effect(["run", file, "--resume", runDir, "--total-steps", "96"], folder)
        assert.strictEqual(refused.code, 2, refused.stdout)
        assert.include(refused.stderr, `this is a run of train, but ${file} is another training: ${what} in the file`)
        assert.include(refused.stderr, "or add --name train if the file is its own\n")
        assert.deepStrictEqual(contentsOf(join(folder, "results")), before)
      }
    }),
  )

  it(
    "is not one that had another algorithm by --set: the printed command repeats it, and resumes the run",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        write(folder, "pole.ts", program("algorithm: A2c.make(), totalSteps: 50_000_000"))
        const stopWhenTraining = async (words: ReadonlyArray<string>, starts: number): Promise<string> => {
          const { interrupt, ended } = begin(words, folder)
          await until(() => startsIn(folder) === starts)
          interrupt()
          const { code, stderr } = await ended
          assert.strictEqual(code, 130, stderr)
          return /resume with: npx effect (.+)\n/.exec(stderr)?.[1] ?? ""
        }
        const printed = await stopWhenTraining(["run", "pole.ts", "--quiet", "--set", "algorithm=ppo"], 1)
        assert.match(printed, /^run pole\.ts --resume \S+ --set algorithm=ppo$/)
        assert.strictEqual(await stopWhenTraining([...printed.split(" "), "--quiet"], 2), printed)
      }),
  )

  it("is recognised if the command gave the run another name or other settings", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      write(folder, "pole.ts", program(a2c))
      const words = ["run", "pole.ts", "--quiet", "--json"]
      const { runDir } = resultOf(await effect([...words, "--set", "algorithm.lstm=4"], folder))
      assert.strictEqual((await effect([...words, "--resume", runDir], folder)).code, 0)
      const named = resultOf(await effect([...words, "--name", "try"], folder))
      assert.strictEqual((await effect([...words, "--resume", named.runDir], folder)).code, 0)
    }),
  )
})

describe("a sweep that was killed before its first run", () => {
  const sweep = ["run", "pole.ts", "--seeds", "1..2", "--resume", "latest", "--dry-run"]
  const folderAt = (folder: string, time: string): string => join(folder, "results", time)

  it("is resumed by latest", () =>
    withFolder(async (folder) => {
      write(folder, "pole.ts", program(a2c))
      const none = await effect(sweep, folder)
      assert.strictEqual(none.code, 2)
      assert.include(none.stderr, "there is no sweep of pole with any of these runs in results")
      for (const time of ["2026-01-01_00-00-01", "2026-01-01_00-00-02"])
        mkdirSync(folderAt(folder, time), { recursive: true })
      writeFileSync(join(folderAt(folder, "2026-01-01_00-00-02"), "sweep.lock"), "process 4194305 on nowhere")
      // A folder that holds the run of another file is not empty.
      mkdirSync(join(folderAt(folder, "2026-01-01_00-00-03"), "no-hash_other", "-", "0001"), { recursive: true })
      const planned = await effect(sweep, folder)
      assert.strictEqual(planned.code, 0, planned.stderr)
      assert.include(planned.stdout, "2026-01-01_00-00-02")
      assert.notInclude(planned.stdout, "2026-01-01_00-00-03")
    }))
})
