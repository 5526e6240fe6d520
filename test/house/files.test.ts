import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const source = fileURLToPath(new URL("../../src", import.meta.url))
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))

/** The lines of the source that match, but for those of the files that may. */
const linesWith = (pattern: RegExp, allowed: ReadonlyArray<string>): ReadonlyArray<string> =>
  files
    .filter((file) => !allowed.includes(file))
    .flatMap((file) =>
      readFileSync(join(source, file), "utf8")
        .split("\n")
        .filter((line) => pattern.test(line) && !/^\s*(\*|\/\/)/.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    )

describe("files", () => {
  it("are found at all", () => assert.isAbove(files.length, 50))

  it("of YAML are read by one reader, which has limits", () =>
    assert.deepEqual(linesWith(/import .*\b(parse\w*|Composer|Parser)\b.* from "yaml"/, ["base/config/yaml.ts"]), []))

  it("of TOML are parsed by one reader, whose errors name the line", () =>
    assert.deepEqual(linesWith(/from "smol-toml"/, ["base/formats/toml.ts"]), []))

  it("are read as text by one reader, which has limits", () =>
    // A run store checks what it reads itself; the page's own files and the system's figures come from no user.
    assert.deepEqual(
      linesWith(/\.readFileString\(|\b(readFile|readFileSync)\(.*"utf8"/, [
        "base/files/files-node.ts",
        "run/store/FileTree.ts",
        "run/store/owner-node.ts",
        "command/ui/page-node.ts",
        "agents/task/code/runner-node.ts",
      ]),
      [],
    ))

  it("lie in folders that are made level by level", () =>
    assert.deepEqual(
      linesWith(/recursive: true/, []).filter((line) => /mkdir|makeDirectory/.test(line)),
      [],
    ))
})
