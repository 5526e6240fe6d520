import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { toPath } from "../../../src/run/identifier.ts"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { effect } from "./effect.ts"

/** Runs that are only folders: the commands read and change no more. */

let folder = ""
let results = ""
const pathOf = (time: string, seed: number, name = "walk") =>
  toPath({ time, commit: "no-hash", name, population: { environment: "E", algorithm: "ppo" }, seed })
const old = pathOf("2026-01-01_00-00-00", 1)
const newer = pathOf("2026-02-01_00-00-00", 2)

const put = (path: string, text = ""): string => {
  const file = join(results, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "manage-"))
  results = join(folder, "results")
  for (const run of [old, newer]) {
    put(`${run}/config.yaml`, "name: walk\nenv: E\nalgorithm: ppo\n")
    put(`${run}/return.json`, "[]")
  }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const runs = async (...args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await effect(["runs", ...args], folder)
  assert.strictEqual(code, 0, stderr)
  return stdout
}
const refused = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stderr } = await effect(["runs", ...args], folder)
  assert.notStrictEqual(code, 0)
  return stderr
}
const listed = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<Record<string, unknown>>> =>
  (await runs(...args, "--json"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
const seedsOf = async (...args: ReadonlyArray<string>) => (await listed(...args)).map(({ seed }) => seed)
const labelsOf = (run: string): unknown => JSON.parse(readFileSync(join(results, run, "labels.json"), "utf8"))

describe("labels of runs", () => {
  it("are written, shown and removed", async () => {
    await runs("rename", "latest", "Large network")
    await runs("tag", "latest", "paper", "best")
    await runs("note", "latest", "Two lines,\nof text.")
    assert.deepEqual(labelsOf(newer), { title: "Large network", note: "Two lines,\nof text.", tags: ["best", "paper"] })
    const [line, other] = await listed()
    assert.deepInclude(line, { seed: 2, name: "walk", title: "Large network", tags: ["best", "paper"] })
    assert.notProperty(other, "title")
    const table = await runs()
    assert.match(table, /Large network.*best paper/)
    const shown = await runs("show", "Large network")
    assert.include(shown, "Two lines,")
    assert.strictEqual(await runs("note", "latest"), "Two lines,\nof text.\n")
    await runs("rename", "latest", "")
    await runs("note", "latest", "")
    await runs("tag", "latest", "--remove", "paper", "--remove", "best")
    assert.isFalse(existsSync(join(results, newer, "labels.json")))
    assert.deepEqual(readdirSync(join(results, newer)).sort(), ["config.yaml", "return.json"])
  })

  it("filter runs", async () => {
    await runs("tag", "0001", "a", "b")
    assert.deepEqual(await seedsOf("--tag", "a", "--tag", "b"), [1])
    assert.deepEqual(await seedsOf("--tag", "c"), [])
    assert.deepEqual(await seedsOf("--where", "tag!=a"), [2])
  })

  it("that do not fit are refused, and nothing is written", async () => {
    assert.include(await refused("tag", "latest", "two words"), "tag: expected a word")
    assert.include(await refused("rename", "latest", "a\nb"), "title: expected one line")
    assert.isFalse(existsSync(join(results, newer, "labels.json")))
  })

  it("that somebody damaged are reported, and not replaced", async () => {
    const file = put(`${newer}/labels.json`, '{"tags": ["two words"]}')
    const { stderr, stdout } = await effect(["runs"], folder)
    assert.include(stderr, "labels.json: expected the labels of a run")
    assert.include(stdout, "walk")
    assert.include(await refused("tag", "latest", "a"), "repair the file, or remove it")
    assert.strictEqual(readFileSync(file, "utf8"), '{"tags": ["two words"]}')
  })
})

describe("archived runs", () => {
  it("are left out of lists and of latest, and stay as they are", async () => {
    await runs("archive", "0002")
    assert.deepEqual(await seedsOf(), [1])
    assert.deepEqual(await seedsOf("--limit", "1"), [1])
    assert.deepEqual(await seedsOf("--archived"), [2, 1])
    assert.deepEqual(await seedsOf("--where", "archived=true"), [2])
    assert.include(await runs("show", "latest"), "0001")
    assert.include(await runs("show", "0002"), "archived")
    await runs("archive", "0001")
    assert.include(await refused("show", "latest"), "are archived; name one by its path")
    const { stderr } = await effect(["runs"], folder)
    assert.include(stderr, "none of the 2 runs matches, but 2 archived do: add --archived")
    await runs("archive", "0001", "0002", "--undo")
    assert.match(await runs("archive", "0001", "--undo"), /0001 was not archived\n$/)
    assert.deepEqual(await seedsOf(), [2, 1])
  })
})

describe("deleting a run", () => {
  it("asks, and needs --yes where nobody can answer", async () => {
    assert.include(await refused("delete", "0001"), "add --yes")
    assert.isTrue(existsSync(join(results, old)))
  })

  it("removes its folder, but nothing that a link in it points to", async () => {
    const outside = put("../outside/kept.txt", "kept")
    symlinkSync(dirname(outside), join(results, old, "link"))
    symlinkSync(outside, join(results, old, "file"))
    const out = await runs("delete", `results/${old}`, "--yes")
    assert.include(out, `deleted ${join(results, old)}\n`)
    assert.isFalse(existsSync(join(results, old)))
    assert.deepEqual(readdirSync(dirname(join(results, old))), [])
    assert.strictEqual(readFileSync(outside, "utf8"), "kept")
    assert.deepEqual(await seedsOf(), [2])
  })

  it("is refused while a process writes the run, its sweep or its trainer", async () => {
    const lock = put(`${old}/run.lock`, ownerName(process.ppid))
    assert.include(await refused("delete", `results/${old}`, "--yes"), "is writing this run")
    writeFileSync(lock, ownerName(2 ** 30))
    const sweep = put(`${old.split("/")[0]}/sweep.lock`, ownerName(process.ppid))
    assert.include(await refused("delete", `results/${old}`, "--yes"), "sweep.lock")
    rmSync(sweep)
    const trainer = pathOf("2026-03-01_00-00-00", 3)
    put(`${trainer}/run_a/config.yaml`, "kind: multirun\n")
    put(`${trainer}/config.yaml`, "kind: multirun\n")
    put(`${trainer}/run.lock`, ownerName(process.ppid))
    assert.include(await refused("delete", `results/${trainer}/run_a`, "--yes"), "is writing this run")
    rmSync(join(results, trainer, "run.lock"))
    put(`${trainer}/run_a/run.lock`, ownerName(process.ppid))
    assert.include(await refused("delete", `results/${trainer}`, "--yes"), "is writing this run")
    await runs("delete", `results/${old}`, "--yes")
    assert.isFalse(existsSync(join(results, old)))
  })

  it("is refused for a link and for other folders", async () => {
    const link = join(results, dirname(old), "0007")
    symlinkSync(join(results, old), link)
    assert.include(await refused("delete", link, "--yes"), "found a link")
    const other = pathOf("2026-04-01_00-00-00", 9)
    put(`${other}/precious.txt`)
    assert.include(await refused("delete", `results/${other}`, "--yes"), "it is not a run")
    assert.isTrue(existsSync(join(results, other, "precious.txt")))
    assert.include(await refused("delete", "s3://bucket/run", "--yes"), "can only be read")
  })

  it("is refused for a file of a run, and for folders of other things that have a config.yaml", async () => {
    for (const file of ["config.yaml", "notes.txt"]) {
      writeFileSync(join(folder, file), "name: mine\n")
      assert.include(await refused("delete", file, "--yes"), "expected the folder of a run, found a file")
    }
    const plot = put(`${old}/plot.png`)
    assert.include(await refused("delete", plot, "--yes"), "found a file")
    writeFileSync(join(folder, "run.log"), "my own log")
    mkdirSync(join(folder, "0001"))
    assert.include(await refused("delete", ".", "--yes"), "nothing shows that this folder was made for a run")
    assert.include(await refused("delete", folder, "--yes"), "nothing shows that this folder was made for a run")
    for (const path of ["0001", "results", dirname(join(results, old))])
      assert.include(await refused("delete", path, "--yes"), "it is not a run")
    assert.sameMembers(readdirSync(folder), ["0001", "config.yaml", "notes.txt", "results", "run.log"])
    assert.sameMembers(readdirSync(join(results, old)), ["config.yaml", "plot.png", "return.json"])
  })

  it("outside of a results folder needs its lease, and is refused from inside of it", async () => {
    mkdirSync(join(folder, "mine/inner"), { recursive: true })
    writeFileSync(join(folder, "mine/config.yaml"), "name: mine\n")
    assert.include(await refused("delete", "mine", "--yes"), "it has no run.lease")
    writeFileSync(join(folder, "mine/run.lease"), "{}")
    symlinkSync(folder, join(results, "there"))
    for (const [path, cwd] of [
      [".", "mine"],
      ["..", "mine/inner"],
      [join(results, "there/mine"), "mine/inner"],
    ]) {
      const { code, stderr } = await effect(["runs", "delete", path, "--yes"], join(folder, cwd))
      assert.notStrictEqual(code, 0)
      assert.include(stderr, "the current directory is in this folder")
    }
    assert.include(await runs("delete", "mine", "--yes"), `deleted ${join(folder, "mine")}\n`)
    assert.isFalse(existsSync(join(folder, "mine")))
  })

  it("twice by the same words never deletes another run", async () => {
    const similar = pathOf("2026-01-01_00-00-00", 10001)
    put(`${similar}/config.yaml`, "name: walk\n")
    await runs("rename", `results/${newer}`, "Baseline")
    // Whatever is no path names another run when this one is gone.
    for (const wanted of ["0001", "E_ppo/0001", "latest", "Baseline"]) {
      const message = await refused("delete", wanted, "--yes")
      assert.include(message, "with --yes nobody checks which run is meant")
      assert.include(message, join(results, wanted.endsWith("1") ? old : newer))
    }
    await runs("delete", `results/${old}`, "--yes")
    assert.include(await refused("delete", `results/${old}`, "--yes"), "has a path that ends with these folder names")
    // A question shows which run is meant. Parts of names are refused nevertheless.
    assert.include(await refused("delete", "0001"), "has a path that ends with these folder names")
    assert.deepEqual(await seedsOf(), [2, 10001])
  })

  it("shows a path with a line feed in one line", async () => {
    const forged = pathOf("2026-05-01_00-00-00", 5, "walk").replace("walk", "walk\n  results")
    put(`${forged}/config.yaml`, "name: walk\n")
    const shown = join(results, forged).replace("\n", "\\u{a}")
    assert.strictEqual(await runs("tag", `results/${forged}`, "a"), `${shown.slice(folder.length + 1)}: a\n`)
    assert.strictEqual(await runs("delete", `results/${forged}`, "--yes"), `deleted ${shown}\n`)
  })
})
