/**
 * Copies the pages of `docs/`, the README and CONTRIBUTING.md to where the site is built from. Links to examples become links to
 * pages that show them, links to other files outside of `docs/` lead to copies as plain text, and links to folders become text.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, extname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { fenced } from "../src/base/text/text.ts"

export const root = fileURLToPath(new URL("..", import.meta.url))

/** The documents outside of `docs/` that are pages of the site. */
const documents: Readonly<Record<string, string>> = {
  "README.md": "start.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
  "examples/README.md": "examples.md",
}

/** The languages in which examples are highlighted, by the ending of their files. */
const languages: Readonly<Record<string, string>> = { ".jsonl": "json", ".mjs": "js", ".h": "c" }

/** Copies all pages into an emptied folder. */
export const stage = (into: string): void => {
  rmSync(into, { recursive: true, force: true })
  const write = (page: string, text: string): void => {
    mkdirSync(dirname(join(into, page)), { recursive: true })
    writeFileSync(join(into, page), text)
  }
  /** Returns the link from a page to a path from the root; undefined for a folder. It makes what the link leads to. */
  const linkTo = (path: string, from: string): string | undefined => {
    if (path.startsWith("docs/")) return relative(dirname(from), path.slice("docs/".length))
    if (path in documents) return relative(dirname(from), documents[path])
    if (statSync(join(root, path)).isDirectory()) return undefined
    const text = readFileSync(join(root, path), "utf8")
    if (!path.startsWith("examples/")) {
      write(`public/source/${path}.txt`, text)
      return `/source/${path}.txt`
    }
    const language = languages[extname(path)] ?? extname(path).slice(1)
    // Servers would take a page named cartpole.ts for a program.
    const page = `${path.replace(/\.(\w+)$/, "-$1")}.md`
    write(page, `# ${basename(path)}\n\n\`${path}\`\n\n${fenced(text, language)}`)
    return relative(dirname(from), page)
  }
  /** Returns a document whose links lead to the pages of the site. `path` and `page` are its old and its new place. */
  const linked = (path: string, page: string): string =>
    readFileSync(join(root, path), "utf8").replace(
      /(\[[^[\]]*\]\()([^()\s#]+)(#[^()\s]*)?\)/g,
      (link, open: string, target: string, anchor = "") => {
        if (/^[a-z]+:/.test(target)) return link
        const found = relative(root, join(root, dirname(path), target)).replace(/\/$/, "")
        const to = linkTo(found, page)
        return to === undefined ? link.slice(1, link.indexOf("]")) : `${open}${to || basename(page)}${anchor})`
      },
    )
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  for (const path of docs) {
    if (path.endsWith(".md")) write(path, linked(`docs/${path}`, path))
    else if (extname(path) !== "") cpSync(join(root, "docs", path), join(into, path), { recursive: true })
  }
  for (const [path, page] of Object.entries(documents)) write(page, linked(path, page))
  write("index.md", linked("website/home.md", "index.md"))
  // The picture at the top of the home page is named in its settings, which VitePress takes for a public file.
  cpSync(join(root, "docs/effect-run.svg"), join(into, "public/effect-run.svg"))
}
