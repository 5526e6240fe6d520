import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseAst } from "rolldown/parseAst"
import { assert, describe, it } from "vitest"

const source = fileURLToPath(new URL("../../src", import.meta.url))

interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value

const childrenOf = (node: Node): ReadonlyArray<Node> => Object.values(node).flat().filter(isNode)

const isConditional = (value: unknown): value is Node => isNode(value) && value.type === "ConditionalExpression"

/** Returns how many conditions a chain `a ? x : b ? y : z` has, from the first on. */
const lengthOf = (node: Node): number => (isConditional(node.alternate) ? 1 + lengthOf(node.alternate) : 1)

/** Finds the conditional expressions that a reader has to unfold: in another's condition or first branch, or a chain of three. */
const foldedIn = (node: Node): ReadonlyArray<Node> => [
  ...(isConditional(node) && (isConditional(node.test) || isConditional(node.consequent) || lengthOf(node) > 2)
    ? [node]
    : []),
  ...childrenOf(node).flatMap(foldedIn),
]

const foldedInText = (text: string, lang: "ts" | "js"): ReadonlyArray<number> =>
  childrenOf({ type: "Program", start: 0, body: parseAst(text, { lang }).body })
    .flatMap(foldedIn)
    .map(({ start }) => text.slice(0, start).split("\n").length)

describe("conditional expressions", () => {
  it.for([
    ["const a = b ? (c ? 1 : 2) : 3", 1],
    ["const a = (b ? c : d) ? 1 : 2", 1],
    ["const a = b ? 1 : c ? 2 : d ? 3 : 4", 1],
    ["const a = b ? 1 : c ? 2 : 3", 0],
    ["const a = b ? f(c ? 1 : 2) : 3", 0],
  ] as const)("of %s: %i are folded", ([text, count]) => assert.lengthOf(foldedInText(text, "ts"), count))

  it(
    "are never inside of another's condition or first branch, and have at most three outcomes",
    { tags: "slow" },
    () => {
      const folded = readdirSync(source, { recursive: true, encoding: "utf8" })
        .filter((file) => /\.[tj]s$/.test(file))
        .flatMap((file) => {
          const lines = foldedInText(readFileSync(join(source, file), "utf8"), file.endsWith(".ts") ? "ts" : "js")
          return lines.map((line) => `src/${file}:${line}`)
        })
      assert.deepStrictEqual(folded, [], "write a function with a return for each case")
    },
  )
})
