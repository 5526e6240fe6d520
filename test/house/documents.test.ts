import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { copiedAlgorithms } from "../rl/algorithms/copied.ts"
import { root, withFolder, write } from "../command/cli/effect.ts"
import { examplesIn } from "./docExamples.ts"

const read = (file: string): string => readFileSync(join(root, file), "utf8")

/** Returns the anchors that editors and GitHub make from the titles of a document. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    Array.from(text.matchAll(/^#+ (.+)$/gm), ([, title]) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  )

describe("documents", () => {
  // One process checks these algorithms, too, because most of its time goes to the types of the library.
  it(
    "have examples that are right about the types, and algorithms copied into a project are, too",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const examples = examplesIn(root)
        assert.isAbove(examples.length, 500)
        for (const { name, program } of examples) write(folder, name, program)
        for (const { file, text } of copiedAlgorithms) write(folder, file, text)
        const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false }
        write(
          folder,
          "tsconfig.json",
          JSON.stringify({ extends: "../tsconfig.json", compilerOptions, include: ["*.ts"] }),
        )
        const { stdout, stderr, status } = spawnSync(
          join(root, "node_modules/.bin/tsc"),
          ["--singleThreaded", "-p", folder],
          {
            cwd: folder,
            encoding: "utf8",
          },
        )
        const wrong = examples.flatMap(({ at, name }) =>
          stdout.split("\n").flatMap((line) => (line.startsWith(`${name}(`) ? [`${at}: ${line}`] : [])),
        )
        assert.deepStrictEqual(wrong, [])
        assert.deepStrictEqual({ stdout, stderr, status }, { stdout: "", stderr: "", status: 0 })
      }),
  )

  it("link to files and titles that there are", () => {
    const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n")
    const broken = documents.flatMap((file) =>
      Array.from(read(file).matchAll(/\]\(([^)\s]+)\)/g), ([, to]) => to)
        .filter((to) => !/^[a-z]+:/.test(to))
        .filter((to) => {
          const [path, anchor] = to.split("#")
          const target = path === "" ? file : join(dirname(file), path)
          if (!existsSync(join(root, target))) return true
          return anchor !== undefined && !anchorsOf(read(target)).has(anchor)
        })
        .map((to) => `${file}: ${to}`),
    )
    assert.deepStrictEqual(broken, [])
  })

  it("name tests that there are as proof of a guard", () => {
    const security = read("SECURITY.md")
    const named = Array.from(security.matchAll(/`((?:property-)?tests?\/[^`]+)`/g), ([, path]) => path)
    assert.isAbove(named.length, 20)
    assert.deepStrictEqual(
      named.filter((path) => !existsSync(join(root, path))),
      [],
    )
    const attacks = security.match(/(?<=attacks on )`[^|]+?`(?= *[|])/g)?.join() ?? ""
    const doors = Array.from(attacks.matchAll(/`([^`]+)`/g), ([, door]) => door)
    assert.isAbove(doors.length, 5)
    const folder = "test/prove/attacks"
    const programs = readdirSync(join(root, folder)).map((file) => read(`${folder}/${file}`))
    assert.deepStrictEqual(
      doors.filter((door) => !programs.some((text) => new RegExp(`door(?::| =) "${door}"`).test(text))),
      [],
    )
  })

  it("list every example", () => {
    const listed = Array.from(read("examples/README.md").matchAll(/\]\(([^)]+)\)/g), ([, path]) => path)
    const files = execFileSync("git", ["ls-files", "examples"], { cwd: root, encoding: "utf8" }).trim().split("\n")
    // `effect presets` lists the presets.
    const isExample = (file: string): boolean =>
      !/^README\.md$|^presets\/|(^|\/)(package(-lock)?\.json|tsconfig\.json|\.npmrc)$/.test(file)
    const examples = files.map((file) => file.slice("examples/".length)).filter(isExample)
    assert.deepStrictEqual(
      examples.filter((file) => !listed.includes(file)),
      [],
    )
  })

  it("show the first experiment as it is", () => {
    const experiment = read("examples/codebook.yaml").replace(/^#.*\n/gm, "")
    assert.include(read("docs/agents.md"), `\`\`\`yaml\n${experiment}\`\`\``)
  })
})
