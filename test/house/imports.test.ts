import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { doors } from "./doors.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The walls of the house, from bottom to top: one knows only itself and those below it. */
const walls = ["base", "tensor", "spread", "run", "rl", "agents", "decoder", "trainer", "command"]

/** Whether a wall may import another. Learning with numbers and acting with words know nothing of each other. */
const mayKnow = (wall: string, other: string): boolean =>
  walls.indexOf(other) < walls.indexOf(wall) && !(wall === "agents" && other === "rl")

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".ts"),
)

const importsOf = (file: string): ReadonlyArray<string> =>
  [
    ...readFileSync(join(root, "src", file), "utf8").matchAll(
      /(?:^|\n)(?:import|export)[^"'\n;]*?(?:\n[^"'\n;]*?)*?from\s+"([^"]+)"|import\("([^"]+)"\)|^import "([^"]+)"/g,
    ),
  ].map((match) => match[1] ?? match[2] ?? match[3])

/** A comment's example imports by the package's own name, which no file of ours does. */
const real = (specifier: string): boolean => specifier !== "effect-rl" && !specifier.startsWith("effect-rl/")

/** The wall of a file, or the file itself if it is an entry point. */
const wallOf = (file: string): string => file.split("/")[0]

/** All imports of one file of `src/` by another. */
const edges = files.flatMap((from) =>
  importsOf(from)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => ({
      from,
      to: relative(join(root, "src"), resolve(dirname(join(root, "src", from)), specifier)),
    })),
)

/** What leaves `src/`: `bin/userCache.js` opens all caches, for the launcher, too; `package.json` has the version. */
const isOutside = ({ from, to }: { readonly from: string; readonly to: string }): boolean =>
  ["../bin/userCache.js", "../package.json"].includes(to) && mayUseNode(from)

const mayUseNode = (file: string): boolean =>
  file === "node.ts" ||
  file.startsWith("command/cli/") ||
  file.startsWith("command/sweep/") ||
  file.startsWith("spread/cluster/") ||
  /^[a-z]+\/([a-z]+\/)*[a-z-]+-node\.ts$/.test(file)

/**
 * Groups files that import each other in a circle, types included: each group has the files that reach each other by the
 * edges (Tarjan's algorithm for strongly connected components).
 */
const circlesOf = (
  edges: ReadonlyArray<{ readonly from: string; readonly to: string }>,
): ReadonlyArray<ReadonlyArray<string>> => {
  const next = Map.groupBy(edges, ({ from }) => from)
  const [order, lowest] = [new Map<string, number>(), new Map<string, number>()]
  const stack: Array<string> = []
  const circles: Array<ReadonlyArray<string>> = []
  const lower = (file: string, to: number): unknown => lowest.set(file, Math.min(lowest.get(file) ?? to, to))
  const visit = (file: string): void => {
    order.set(file, order.size)
    lower(file, order.size - 1)
    const depth = stack.push(file) - 1
    for (const { to } of next.get(file) ?? []) {
      if (!order.has(to)) visit(to)
      if (stack.includes(to)) lower(file, lowest.get(to) ?? 0)
    }
    if (lowest.get(file) !== order.get(file)) return
    const circle = stack.splice(depth)
    if (circle.length > 1) circles.push(circle.sort())
  }
  for (const file of next.keys()) if (!order.has(file)) visit(file)
  return circles
}

describe("imports", () => {
  it("are found at all", () => {
    assert.isAbove(files.length, 50)
    assert.isAbove(files.flatMap(importsOf).length, 200)
  })

  it("point down the nine walls only", () => {
    const isEntry = (file: string): boolean => !file.includes("/")
    for (const file of files.filter((one) => !isEntry(one)))
      assert.include(walls, wallOf(file), `src/${file} is in none of the walls`)
    const wrong = edges.filter((edge) => {
      const { from, to } = edge
      if (isEntry(from) || wallOf(from) === wallOf(to) || isOutside(edge)) return false
      // The command provides Node's Layers, which the entry point for Node has.
      return !mayKnow(wallOf(from), wallOf(to)) && !(wallOf(from) === "command" && to === "node.ts")
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("enter a wall by its doors", () => {
    const entered = new Set(
      edges
        .filter((edge) => wallOf(edge.from) !== wallOf(edge.to) && edge.from.includes("/") && edge.to.includes("/"))
        .filter((edge) => !isOutside(edge))
        .map(({ to }) => to),
    )
    const listed = Object.entries(doors).flatMap(([wall, modules]) => modules.map((module) => `${wall}/${module}`))
    assert.deepStrictEqual([...entered].sort(), listed.sort(), "test/house/doors.ts lists what a wall shows to others")
  })

  it("finds circles of imports", () => {
    const edges = ["ab", "bc", "ca", "cd", "de", "ed", "fa"].map(([from, to]) => ({ from, to }))
    assert.deepStrictEqual(circlesOf(edges).toSorted(), [
      ["a", "b", "c"],
      ["d", "e"],
    ])
  })

  it("circles of imports are at most 2", () => {
    const remaining = [
      // A task is the seat of a player in a game, and a game takes the same steps as a task.
      ["agents/task/MultiTextEnv.ts", "agents/task/TextEnv.ts", "agents/task/guard.ts"],
      // The public module has the types of spaces, of which the other file implements the functions that it exports.
      ["rl/env/Space.ts", "rl/env/internal/values.ts"],
    ]
    assert.deepStrictEqual(circlesOf(edges).toSorted(), remaining)
  })

  it("keep Node and native packages out of the core", () => {
    const wrong = files
      .filter((file) => !mayUseNode(file))
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, specifier })))
      .filter(
        ({ specifier }) =>
          /^node:|^onnxruntime-node|^redis$|^@effect\/(platform-node|sql-pg)/.test(specifier) && real(specifier),
      )
      .map(({ file, specifier }) => `${file} imports ${specifier}`)
    assert.deepStrictEqual(wrong, [])
  })

  it("keep import.meta, which is empty in an IIFE, in CommonJS and in edge workers, out of the core", () => {
    const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\/|"[^"\n]*"|`[^`]*`/g, "")
    const wrong = files
      .filter((file) => !mayUseNode(file))
      .filter((file) => withoutComments(readFileSync(join(root, "src", file), "utf8")).includes("import.meta"))
    assert.deepStrictEqual(wrong, [])
  })

  it("take unstable modules of Effect only where they are adapted", () => {
    const adapted: Readonly<Record<string, string>> = {
      "base/formats/picture/ffmpeg.ts": "effect/process/ChildProcess",
      "trainer/store/redisStore.ts": "effect/persistence/Redis",
      "run/store/objects/ObjectStore.ts": "effect/persistence/KeyValueStore",
      "agents/openenv/app.ts": "effect/socket/Socket",
    }
    const forModels = (specifier: string): boolean => /^effect\/(ai|encoding|http)\//.test(specifier)
    const forHttp = (specifier: string): boolean => specifier.startsWith("effect/http/")
    const forClusters = (specifier: string): boolean => /^effect\/(cluster|persistence|sql|workflow)\//.test(specifier)
    const usesHttp = (file: string): boolean =>
      file.startsWith("decoder/serve/") ||
      file.startsWith("agents/gateway/") ||
      file.startsWith("agents/openenv/") ||
      file.startsWith("trainer/tinker/") ||
      [
        "command/trackers/mlflow.ts",
        "run/store/objects/s3.ts",
        "agents/agent/HttpAgent.ts",
        "agents/task/hub/client.ts",
        "agents/task/hub/upload.ts",
      ].includes(file)
    const forTools = (specifier: string): boolean => /^effect\/(ai|http|process)\//.test(specifier)
    const forThreads = (specifier: string): boolean => /^effect\/(rpc|workers)\//.test(specifier)
    // The modules that the entry of Effect exports have capital letters, folders of unstable ones have small letters.
    const isUnstable = (specifier: string): boolean => /^effect\/[a-z]/.test(specifier)
    const wrong = files
      .filter(
        (file) =>
          !/^command\/(cli|sweep)\//.test(file) && !["command/ui/server-node.ts", "node.ts", "web.ts"].includes(file),
      )
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, specifier })))
      .filter(
        ({ file, specifier }) =>
          isUnstable(specifier) &&
          !(file.startsWith("agents/lm/") && forModels(specifier)) &&
          adapted[file] !== specifier &&
          !(file.startsWith("agents/agent/mcp/") && forTools(specifier)) &&
          !(usesHttp(file) && forHttp(specifier)) &&
          !(/^(trainer\/engine|spread\/workers)\//.test(file) && forThreads(specifier)) &&
          !(file.startsWith("spread/cluster/") && forClusters(specifier)),
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("name one module of Effect at a time, because effect/ai or effect/http loads all of its twenty or more", () => {
    const barrels = (file: string) => importsOf(file).filter((specifier) => /^effect\/[a-z-]+$/.test(specifier))
    const wrong = files.flatMap((file) => barrels(file).map((specifier) => `${file} imports ${specifier}`))
    assert.deepStrictEqual(wrong, [])
  })
})
