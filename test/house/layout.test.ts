import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import * as Layout from "../../src/run/Layout.ts"

const source = fileURLToPath(new URL("../../src", import.meta.url))

/** Every constant text in the layout: `config.yaml`, `checkpoints`, `scores/train/scores.jsonl` and so on. */
const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []

const constants = [...new Set(textsIn({ ...Layout }).flatMap((text) => text.split("/")))].filter(
  (name) => name !== "train" && name !== "val",
)
/** A name with an ending is unmistakable; the name of a folder is one only in a path, before a slash. */
const names = [
  ...constants.map((name) => (name.includes(".") ? name : `${name}/`)),
  "seen_episodes",
  "memory_",
  "llm_calls",
  "memories/",
  "rollouts/",
]

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
/** The name begins a part of a path, or a part of a regular expression. */
const nameInPath = new RegExp(`(?:^|[/}^(|_])(?:${names.map(escaped).join("|")})`)

const quoted = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|\/((?:[^/\\\n]|\\.)+)\/[a-z]*/g

/** Tells whether a text is an address that the page requests from its server: these begin with `data/`. */
const isAddress = (text: string): boolean => text.startsWith("data/")

/** The paths and patterns that a line of code spells. A text with spaces is prose: a message, or help. */
const literalsOf = (line: string): ReadonlyArray<string> =>
  [...line.matchAll(quoted)]
    .map((match) => match[1] ?? match[2] ?? match[3] ?? match[4].replaceAll("\\", ""))
    .filter((text) => !/\s/.test(text.replace(/\$\{[^}]*\}/g, "")) && !isAddress(text))

const spellsName = (line: string): boolean => literalsOf(line).some((text) => nameInPath.test(text))

const isComment = (line: string): boolean => /^\s*(?:\/\/|\/?\*)/.test(line)
const isImport = (line: string): boolean => /^\s*(?:import|export)\b.*\bfrom\b|\} from "|\bimport\("/.test(line)

describe("the layout of a run", () => {
  it.for([
    'join(run, "return.json")',
    "files.text(`${run}/run.log`, -1)",
    "/^(\\d+)_seen_episodes_scores\\.jsonl$/.exec(name)",
    "run.list(`checkpoints/${name}`)",
  ])("is recognised in %s", (line) => assert.isTrue(spellsName(line)))

  it.for(['"it has no return.json"', '"package.json"', '"tsconfig.json"', 'Flag.Boolean("checkpoints")'])(
    "is not seen in %s",
    (line) => assert.isFalse(spellsName(line)),
  )

  it("is spelled in Layout.ts alone", () => {
    const wrong = readdirSync(source, { recursive: true, encoding: "utf8" })
      // The files of a model have the names that other programs gave them.
      .filter(
        (file) =>
          file.endsWith(".ts") && ![join("run", "Layout.ts"), join("base/formats/modelFiles.ts")].includes(file),
      )
      .flatMap((file) =>
        readFileSync(join(source, file), "utf8")
          .split("\n")
          .flatMap((line, index) =>
            isComment(line) || isImport(line) || !spellsName(line) ? [] : [`${file}:${index + 1}: ${line.trim()}`],
          ),
      )
    assert.deepStrictEqual(wrong, [], "src/run/Layout.ts names the files of a run; import it")
  })
})
