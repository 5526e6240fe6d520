import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { guide } from "../../website/guide.ts"
import { root, stage } from "../../website/stage.ts"

const folder = mkdtempSync(join(tmpdir(), "effect-website-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const pagesIn = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"))

/** The links of a page, without those to other sites and within the page, and without blocks of code. */
const linksOf = (text: string): ReadonlyArray<string> =>
  Array.from(text.replace(/^(`{3,})[\s\S]*?^\1/gm, "").matchAll(/\]\(([^()\s#]+)/g), ([, link]) => link).filter(
    (link) => !/^[a-z]+:/.test(link),
  )

describe("the site of the documentation", () => {
  stage(folder)

  it("has every page of docs/ in its menu, and no other", () => {
    const inMenu = guide.flatMap(({ pages }) => Object.keys(pages))
    // The menu lists the pages of algorithms by itself, below their overview.
    const byItself = (page: string): boolean => page === "algorithms" || page.startsWith("algorithms/")
    const without = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): ReadonlyArray<string> =>
      some.filter((page) => !byItself(page) && !others.includes(page))
    const pages = pagesIn(join(root, "docs")).map((page) => page.slice(0, -".md".length))
    assert.deepEqual({ missing: without(pages, inMenu), unknown: without(inMenu, pages) }, { missing: [], unknown: [] })
  })

  it("links to pages, pictures and files that are there, also where the repository has no page", () => {
    const wrong = pagesIn(folder).flatMap((page) =>
      linksOf(readFileSync(join(folder, page), "utf8"))
        .filter(
          (link) =>
            !existsSync(link.startsWith("/") ? join(folder, "public", link) : join(folder, dirname(page), link)),
        )
        .map((link) => `${page}: ${link}`),
    )
    assert.deepEqual(wrong, [])
    assert.isTrue(existsSync(join(folder, "examples/cartpole-ts.md")))
    assert.isTrue(existsSync(join(folder, "public/source/src/rl/algorithms/rollouts/A2c.ts.txt")))
  })
})
